package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/ir"
)

// gpuSide is what a group has for collectives on GPUs.
type gpuSide struct {
	engine collective.DeviceEngine // nil until the first one
	// By peer: how many sends and receives the GPUs have begun.
	sent, received map[int]int
}

// Layout implements collective.DeviceCommunicator.
func (w *world) Layout(group string) (size int, library bool, err error) {
	g := w.group(group)
	if g == nil {
		return 0, false, fmt.Errorf("dist: %w: this rank is in no group %q that is open", ir.ErrArg, group)
	}
	return g.Size(), w.library, nil
}

// StartOn implements collective.DeviceCommunicator. What ranks have to tell each other goes by the engine
// of the processes; a goroutine watches each transfer, since a stream would wait for ever for a rank that
// does not come.
func (w *world) StartOn(ctx context.Context, ts []collective.Transfer, gpu collective.GPU, stream uintptr, record func() (func() (bool, error), error)) (collective.Request, error) {
	u := ts[0].Use
	g := w.group(u.Group)
	if g == nil {
		return nil, w.unknown(u)
	}
	j := &job{w: w, done: make(chan struct{})}
	var ms []*meter
	for _, t := range ts {
		ms = append(ms, w.meters.of(t.Use, t.Use.In.Bytes()))
	}
	begun := w.meters.now()
	err := g.do(ctx, u.Op, u.Line, func(ctx context.Context) error {
		if err := g.startDevice(ctx, gpu); err != nil {
			return err
		}
		ops, err := g.deviceOps(ctx, ts)
		if err != nil || len(ops) == 0 {
			return err
		}
		return g.gpu.engine.Issue(g.given(ctx), stream, ops)
	})
	if err != nil {
		return nil, err
	}
	passed, err := record()
	if err != nil {
		return nil, err
	}
	e := g.gpu.engine
	go func() {
		defer close(j.done)
		j.err = g.run(&bounded{w: w}, context.Background(), u.Op, u.Line, func(ctx context.Context) error { return g.watch(ctx, passed, e) })
		if j.err != nil {
			e.Abort()
		}
		for _, m := range ms {
			m.ran(begun)
		}
	}()
	return j, nil
}

// startDevice starts the group's engine on GPUs at its first collective there, which all ranks have agreed
// about.
func (g *Group) startDevice(ctx context.Context, gpu collective.GPU) error {
	if g.gpu.engine != nil {
		return nil
	}
	s := collective.Devices()
	if s == nil {
		return fmt.Errorf("%w: this program has no engine for collectives on GPUs: import _ \"github.com/loris-ml/loris/dist/nccl\", or compute them on the CPU", ir.ErrArg)
	}
	const room = 512 // for the length and what is told
	told := make([]byte, room)
	if g.Rank() == 0 {
		id, err := s.NewID()
		if err != nil {
			return err
		}
		if len(id) > room-2 {
			return fmt.Errorf("an id of %d bytes is too long", len(id))
		}
		told[0], told[1] = byte(len(id)), byte(len(id)>>8)
		copy(told[2:], id)
	}
	if err := g.engine.Broadcast(ctx, told, 0); err != nil {
		return err
	}
	e, err := s.Start(g.given(ctx), gpu, g.Rank(), g.Size(), told[2:][:int(told[0])|int(told[1])<<8])
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		e.Abort()
		return errClosed
	}
	g.gpu = gpuSide{engine: e, sent: map[int]int{}, received: map[int]int{}}
	return nil
}

// deviceOps writes transfers as what an engine enqueues. Of sends and receives the ranks tell each other
// what they are, and which of those between the two: GPUs know no tags.
func (g *Group) deviceOps(ctx context.Context, ts []collective.Transfer) ([]collective.DeviceOp, error) {
	var ops []collective.DeviceOp
	for _, t := range ts {
		if t.Use.Op == "send" {
			g.gpu.sent[t.Use.Peer]++
			turn := g.gpu.sent[t.Use.Peer]
			g.beside(t.Use, func(ctx context.Context) error { return g.sendHeader(ctx, t.Use, turn) })
		}
	}
	for _, t := range ts {
		u := t.Use
		op := collective.DeviceOp{Peer: u.Peer, In: t.In, Out: t.Out, Bytes: u.In.Bytes()}
		switch u.Op {
		case "send":
			op.Kind = collective.DeviceSend
		case "recv":
			g.gpu.received[u.Peer]++
			if err := g.recvHeader(ctx, u, g.gpu.received[u.Peer]); err != nil {
				return nil, err
			}
			op.Kind, op.Bytes = collective.DeviceRecv, u.Out.Bytes()
		case "broadcast":
			op.Kind = collective.DeviceBroadcast
		case "all_gather", "barrier":
			op.Kind = collective.DeviceGather
			if u.Op == "barrier" {
				op.Bytes = 1
			}
		case "all_reduce":
			op.Kind = collective.DeviceSumF32
			if u.In.DType() == ir.F64 {
				op.Kind = collective.DeviceSumF64
			}
		case "all_to_all":
			for r := range g.Size() {
				part := op.Bytes / g.Size()
				at := uintptr(r * part)
				if part > 0 {
					ops = append(ops, collective.DeviceOp{Kind: collective.DeviceSend, Peer: r, In: op.In + at, Bytes: part},
						collective.DeviceOp{Kind: collective.DeviceRecv, Peer: r, Out: op.Out + at, Bytes: part})
				}
			}
			continue
		default:
			return nil, fmt.Errorf("%w: GPUs have no %s", ir.ErrArg, u.Op)
		}
		if op.Bytes > 0 {
			ops = append(ops, op)
		}
	}
	return ops, nil
}

// given returns a function that says why nothing is waited for any more: a rank has failed, or ctx has
// ended.
func (g *Group) given(ctx context.Context) func() error {
	return func() error { return cmp.Or(g.world.root.engine.Failed(), context.Cause(ctx)) }
}

// watch waits for a transfer, a failure of any rank, or the end of ctx.
func (g *Group) watch(ctx context.Context, passed func() (bool, error), e collective.DeviceEngine) error {
	const first, last = 20 * time.Microsecond, time.Millisecond
	given := g.given(ctx)
	for nap := first; ; nap = min(nap*2, last) {
		if ok, err := passed(); ok || err != nil {
			return errors.Join(err, e.Err())
		}
		if err := cmp.Or(given(), e.Err()); err != nil {
			return err
		}
		time.Sleep(nap)
	}
}
