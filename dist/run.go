package dist

import (
	"context"
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/loris-ml/loris/internal/collective"
	"github.com/loris-ml/loris/internal/ir"
)

const (
	// pieceBytes is what longer reductions are cut into: engines in shared memory are several times as
	// quick with pieces that stay in the processor's cache.
	pieceBytes = 1 << 20
	// headerBytes is the length of what goes before the elements of a send: what is sent.
	headerBytes = 512
)

// execute runs this rank's part of a collective.
func (g *Group) execute(ctx context.Context, u *collective.Use, out, in []byte) error {
	if u.Unagreed {
		if err := newAgreement(g, []Use{{g.Rank(), u.Text, u.Line}}).agree(ctx); err != nil {
			return err
		}
	}
	d := u.In.DType()
	switch u.Op {
	case "all_reduce":
		return g.allReduce(ctx, out, in, d, u.Reduction)
	case "reduce":
		err := g.allReduce(ctx, out, in, d, "sum")
		if g.Rank() != u.Peer {
			clear(out)
		}
		return err
	case "broadcast":
		if g.Rank() == u.Peer {
			copy(out, in)
		}
		return g.engine.Broadcast(ctx, out, u.Peer)
	case "all_gather":
		return g.allGather(ctx, u, out, in)
	case "reduce_scatter":
		return g.reduceScatter(ctx, u, out, in)
	case "all_to_all":
		return g.allToAll(ctx, u, out, in)
	case "send":
		clear(out)
		return g.send(ctx, u, in)
	case "recv":
		return g.recv(ctx, u, out)
	case "barrier":
		copy(out, in)
		return g.engine.AllGather(ctx, make([]byte, g.Size()), make([]byte, 1))
	}
	return fmt.Errorf("%w: there is no collective %s", ir.ErrArg, u.Op)
}

func (g *Group) allReduce(ctx context.Context, out, in []byte, d ir.DType, how string) error {
	n := g.Size()
	if len(in)*n <= collective.Gathered {
		all := g.scratch(0, len(in)*n)
		if err := g.engine.AllGather(ctx, all, in); err != nil {
			return err
		}
		reduceTo(out, g.cut(all), -1, d, how)
		return nil
	}
	if e, ok := g.engine.(Summer); ok && g.world.library && how == "sum" && (d == ir.F32 || d == ir.F64) {
		return e.Sum(ctx, out, in, d)
	}
	if e, ok := g.engine.(Reducer); ok {
		return e.AllReduce(ctx, out, in, joiner(d, how))
	}
	chunk := max(min(pieceBytes/n/Alignment, len(in)/n/Alignment+1), 1) * Alignment // bytes that one rank adds
	send, got, sum := g.scratch(0, chunk*n), g.scratch(1, chunk*n), g.scratch(2, chunk)
	for at := 0; at < len(in); at += chunk * n {
		src, dst := in[at:], out[at:]
		whole := len(src) >= chunk*n
		if whole {
			src, dst = src[:chunk*n], dst[:chunk*n]
		} else {
			clear(send[copy(send, src):])
			src = send
		}
		if err := g.engine.AllToAll(ctx, got, src); err != nil {
			return err
		}
		reduceTo(sum, g.cut(got), -1, d, how)
		to := dst
		if !whole {
			to = send
		}
		if err := g.engine.AllGather(ctx, to, sum); err != nil {
			return err
		}
		if !whole {
			copy(dst, send)
		}
	}
	return nil
}

func joiner(d ir.DType, how string) Joiner {
	return func(out []byte, parts [][]byte, keep int) { reduceTo(out, parts, keep, d, how) }
}

// Alignment is that of elements of all dtypes in bytes; engines cut runs of elements at multiples of it.
const Alignment = 16

// aligned returns n bytes, aligned for elements.
func aligned(n int) []byte {
	words := make([][Alignment / 8]uint64, (n+Alignment-1)/Alignment)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*Alignment)[:n:n]
}

func (g *Group) allGather(ctx context.Context, u *collective.Use, out, in []byte) error {
	b := blocksOf(u.In, u.Dim)
	if b.outer == 1 {
		return g.engine.AllGather(ctx, out, in)
	}
	all := g.scratch(0, len(out))
	if err := g.engine.AllGather(ctx, all, in); err != nil {
		return err
	}
	b.interleave(out, all, g.Size())
	return nil
}

func (g *Group) reduceScatter(ctx context.Context, u *collective.Use, out, in []byte) error {
	n, src := g.Size(), in
	if b := blocksOf(u.Out, u.Dim); b.outer > 1 {
		src = g.scratch(0, len(in))
		b.separate(src, in, n)
	}
	if e, ok := g.engine.(Reducer); ok {
		return e.ReduceScatter(ctx, out, src, joiner(u.In.DType(), u.Reduction))
	}
	got := g.scratch(1, len(in))
	if err := g.engine.AllToAll(ctx, got, src); err != nil {
		return err
	}
	reduceTo(out, g.cut(got), -1, u.In.DType(), u.Reduction)
	return nil
}

func (g *Group) allToAll(ctx context.Context, u *collective.Use, out, in []byte) error {
	n := g.Size()
	b := blocksOf(u.In, u.Dim)
	b.bytes /= n
	if b.outer == 1 {
		return g.engine.AllToAll(ctx, out, in)
	}
	src, got := g.scratch(0, len(in)), g.scratch(1, len(in))
	b.separate(src, in, n)
	if err := g.engine.AllToAll(ctx, got, src); err != nil {
		return err
	}
	b.interleave(out, got, n)
	return nil
}

// blocks is how one rank's part of a tensor lies in the whole: outer runs of bytes.
type blocks struct{ outer, bytes int }

// blocksOf returns the blocks of a part of shape s that is joined with others along dim.
func blocksOf(s ir.Shape, dim int) blocks {
	b := blocks{1, s.DType().Size()}
	for i, n := range s.Dims() {
		if i < dim {
			b.outer *= n
		} else {
			b.bytes *= n
		}
	}
	return b
}

// interleave joins the parts of n ranks, which lie one after another.
func (b blocks) interleave(whole, parts []byte, n int) {
	for r := range n {
		for o := range b.outer {
			copy(whole[(o*n+r)*b.bytes:][:b.bytes], parts[(r*b.outer+o)*b.bytes:])
		}
	}
}

// separate is the inverse of interleave.
func (b blocks) separate(parts, whole []byte, n int) {
	for r := range n {
		for o := range b.outer {
			copy(parts[(r*b.outer+o)*b.bytes:][:b.bytes], whole[(o*n+r)*b.bytes:])
		}
	}
}

// header is what goes before the elements of a send. Turn counts those to a rank that GPUs exchange.
type header struct {
	Text, Line string
	Turn       int `json:",omitempty"`
}

func (g *Group) send(ctx context.Context, u *collective.Use, in []byte) error {
	if err := g.sendHeader(ctx, u, 0); err != nil {
		return err
	}
	return g.engine.Send(ctx, in, u.Peer, 2*u.Tag+1)
}

func (g *Group) sendHeader(ctx context.Context, u *collective.Use, turn int) error {
	text, err := json.Marshal(header{u.In.String(), u.Line, turn})
	if err != nil || len(text) > headerBytes {
		text, _ = json.Marshal(header{Text: u.In.String(), Turn: turn}) // a line of that length says little
	}
	head := make([]byte, headerBytes)
	copy(head, text)
	for i := len(text); i < len(head); i++ {
		head[i] = ' '
	}
	return g.engine.Send(ctx, head, u.Peer, 2*u.Tag)
}

// recv compares what is sent with what is wanted before it takes the elements.
func (g *Group) recv(ctx context.Context, u *collective.Use, out []byte) error {
	if err := g.recvHeader(ctx, u, 0); err != nil {
		return err
	}
	return g.engine.Recv(ctx, out, u.Peer, 2*u.Tag+1)
}

func (g *Group) recvHeader(ctx context.Context, u *collective.Use, turn int) error {
	head := make([]byte, headerBytes)
	if err := g.engine.Recv(ctx, head, u.Peer, 2*u.Tag); err != nil {
		return err
	}
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return fmt.Errorf("rank %d sent what is no header: %w", u.Peer, err)
	}
	at := func(turn int) string { // a rank whose elements are on the host has none
		if turn == 0 {
			return ""
		}
		return fmt.Sprintf(", GPU's transfer %d of the two ranks", turn)
	}
	if want := u.Out.String(); h.Text != want || h.Turn != turn {
		return &MismatchError{Group: u.Group, oneSided: true, Uses: [2]Use{
			{g.Rank(), fmt.Sprintf("recv(%s, peer %d, tag %d%s)", want, u.Peer, u.Tag, at(turn)), u.Line},
			{u.Peer, fmt.Sprintf("send(%s, peer %d, tag %d%s)", h.Text, g.Rank(), u.Tag, at(h.Turn)), h.Line},
		}}
	}
	return nil
}
