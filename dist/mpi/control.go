package mpi

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxSilence is what a rank may be silent for, however long the limit is.
const maxSilence = 30 * time.Second

// beat is how often a rank tells where it is.
const beat = 100 * time.Millisecond

// A connection has maxGreeting to say whose it is, in maxLine bytes: anybody may connect.
const (
	maxGreeting = 10 * time.Second
	maxLine     = 64 << 10
)

// control is a rank's end of the control channel: TCP to rank 0, on which all tell how many transfers
// they have begun. Rank 0 tells all of the first that dies, falls silent or gives up. A job has it beside
// MPI, whose calls return no error or wait for ever then.
type control struct {
	rank  int
	spin  time.Duration // how long waits ask without sleeping
	conn  net.Conn
	moves atomic.Uint64
	ended chan struct{} // closed by close
	once  sync.Once

	failed atomic.Pointer[error]

	mu   sync.Mutex
	enc  *json.Encoder
	seen report // the last of rank 0
}

// report is a line of the channel, in either direction. The first line of a rank has its token.
type report struct {
	Token  string   `json:",omitempty"`
	Rank   int      `json:",omitempty"`
	Moves  uint64   `json:",omitempty"`
	Closed bool     `json:",omitempty"`
	Fail   string   `json:",omitempty"`
	All    []uint64 `json:",omitempty"` // of rank 0: where all are
}

// dialControl joins the channel of a job.
func dialControl(ctx context.Context, addr, token string, rank int) (*control, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	k := &control{rank: rank, conn: conn, ended: make(chan struct{}), enc: json.NewEncoder(conn)}
	if err := k.send(report{Token: token, Rank: rank}); err != nil {
		return nil, err
	}
	go k.beats()
	go k.listen()
	return k, nil
}

// dial tries until it reaches the address, which another process may only begin to listen at.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("rank 0 does not answer at %s: %w: %w", addr, context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (k *control) send(r report) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.enc.Encode(r)
}

func (k *control) beats() {
	for {
		select {
		case <-k.ended:
			return
		case <-time.After(beat):
			if k.send(report{Rank: k.rank, Moves: k.moves.Load()}) != nil {
				return // listen finds out why
			}
		}
	}
}

func (k *control) listen() {
	dec := json.NewDecoder(k.conn)
	for {
		var r report
		err := dec.Decode(&r)
		switch {
		case err != nil:
			k.fail(errors.New("rank 0 has ended"))
		case r.Fail != "":
			k.fail(errors.New(r.Fail))
		default:
			k.mu.Lock()
			k.seen = r
			k.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// fail keeps the first failure, unless the rank has left.
func (k *control) fail(err error) {
	select {
	case <-k.ended:
	default:
		k.failed.CompareAndSwap(nil, &err)
	}
}

// moved counts a transfer that begins.
func (k *control) moved() { k.moves.Add(1) }

// err returns the failure of a rank, or nil.
func (k *control) err() error {
	if err := k.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// abort tells all ranks that this one gives up.
func (k *control) abort(cause error) {
	k.fail(cause)
	_ = k.send(report{Rank: k.rank, Fail: fmt.Sprintf("rank %d gave up: %v", k.rank, cause)}) // without a channel the others notice by themselves
}

// status says which ranks are behind.
func (k *control) status() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Clone(k.seen.All)
	if len(all) <= k.rank {
		return ""
	}
	all[k.rank] = k.moves.Load()
	var behind []string
	most := slices.Max(all)
	for r, n := range all {
		if n < most {
			behind = append(behind, fmt.Sprintf("rank %d is at transfer %d", r, n))
		}
	}
	if behind == nil {
		return ""
	}
	return fmt.Sprintf("%s, the others at %d", strings.Join(behind, ", "), most)
}

// close leaves the channel.
func (k *control) close() {
	k.once.Do(func() {
		close(k.ended)
		_ = k.send(report{Rank: k.rank, Closed: true}) // rank 0 may have left before
		_ = k.conn.Close()
	})
}

// hub is rank 0's end of the channel.
type hub struct {
	token string
	limit time.Duration // of silence

	mu    sync.Mutex
	peers []*peer // by rank; nil until it comes
	told  bool    // that a rank has failed
}

type peer struct {
	enc    *json.Encoder
	moves  uint64
	heard  time.Time
	closed bool
}

// serveControl serves the channel of a job until ctx ends. A rank that is silent for half of the limit, or
// maxSilence, has failed: it is stopped, or its machine is gone.
func serveControl(ctx context.Context, ln net.Listener, size int, token string, limit time.Duration) {
	h := &hub{token: token, limit: min(limit/2, maxSilence), peers: make([]*peer, size)}
	go accept(ctx, ln, maxGreeting, h.serve)
	go h.watch(ctx)
}

// accept serves each connection on a goroutine of its own until ctx ends, which closes the listener. A
// connection can be read for so long, until serve has found out whose it is.
func accept(ctx context.Context, ln net.Listener, greeting time.Duration, serve func(net.Conn)) {
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		_ = conn.SetReadDeadline(time.Now().Add(greeting)) // the read says what is wrong
		go serve(conn)
	}
}

// serve reads what a rank tells.
func (h *hub) serve(conn net.Conn) {
	defer conn.Close()
	in := &io.LimitedReader{R: conn, N: maxLine}
	dec := json.NewDecoder(in)
	var first report
	if dec.Decode(&first) != nil || subtle.ConstantTimeCompare([]byte(first.Token), []byte(h.token)) != 1 || first.Rank < 0 || first.Rank >= len(h.peers) {
		return // a stranger
	}
	in.N = math.MaxInt64
	_ = conn.SetReadDeadline(time.Time{}) // watch bounds a rank's silence
	p := &peer{enc: json.NewEncoder(conn), heard: time.Now()}
	h.mu.Lock()
	h.peers[first.Rank] = p
	h.mu.Unlock()
	for {
		var r report
		err := dec.Decode(&r)
		h.mu.Lock()
		switch {
		case err != nil && !p.closed:
			h.tell(fmt.Sprintf("rank %d has died at transfer %d", first.Rank, p.moves))
		case r.Fail != "":
			h.tell(r.Fail)
		case err == nil:
			p.moves, p.heard, p.closed = max(p.moves, r.Moves), time.Now(), r.Closed
		}
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// tell tells all ranks of the first failure; h.mu is held.
func (h *hub) tell(text string) {
	if h.told {
		return
	}
	h.told = true
	for _, p := range h.peers {
		if p != nil && !p.closed {
			_ = p.enc.Encode(report{Fail: text}) // who cannot be told is dead, too
		}
	}
}

// watch tells where all are, and looks for a rank that is silent.
func (h *hub) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(beat):
		}
		h.mu.Lock()
		all := make([]uint64, len(h.peers))
		for r, p := range h.peers {
			if p == nil {
				continue
			}
			all[r] = p.moves
			if silent := time.Since(p.heard); silent > h.limit && !p.closed {
				h.tell(fmt.Sprintf("rank %d has said nothing for %v; it was at transfer %d", r, silent.Round(beat), p.moves))
			}
		}
		for _, p := range h.peers {
			if p != nil && !p.closed && !h.told {
				_ = p.enc.Encode(report{All: all}) // its own connection finds out
			}
		}
		h.mu.Unlock()
	}
}
