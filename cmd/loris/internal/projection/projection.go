// Package projection computes how long a step that was traced would take on other numbers of ranks.
package projection

import (
	"math"
	"math/bits"
	"time"
)

// Transfer is a collective of a step.
type Transfer struct {
	Op string // ir's name
	// Bytes are those of the whole: the operand of all_reduce, reduce, broadcast, reduce_scatter, send and
	// recv, the result of all_gather, what a rank has of all_to_all.
	Bytes int
}

// Item is a part of the schedule: a kernel, or the begin or the wait of a transfer.
type Item struct {
	Kernel time.Duration
	Begin  *Transfer
	Wait   *Transfer // one that has begun
}

// Network is what transfers cost: Alpha for each message, and Beta bytes a second for each rank, both ways
// at a time.
type Network struct {
	Alpha time.Duration
	Beta  float64
	// Library says that sums are the library's (dist.WithLibrarySums), in place of dist's tree.
	Library bool
}

const (
	short = 16 << 10 // up to so many bytes of all ranks together dist gathers and adds on each
	piece = 2 << 20  // what dist/mpi cuts longer tensors into
)

// Cost returns how long a transfer takes on n ranks:
//
//	gathered    p·⌈log2 n⌉·α + (n-1)/n·B/β, p = ⌈B/2 MiB⌉    all_gather; B is n times the operand
//	exchanged   p·(n-1)·α + (n-1)/n·B/β                      all_to_all, reduce_scatter
//	all_reduce  gathered, with n·B for B                     where that is up to 16 KiB
//	            exchanged + gathered                         dist's tree: parts are exchanged, joined and gathered
//	            2·⌈log2 n⌉·α + 2(n-1)/n·B/β                  the library's: halving and doubling
//	broadcast   ⌈log2 n⌉·(α + B/β)
//	send, recv  α + B/β
func (w Network) Cost(t *Transfer, n int) time.Duration {
	if n < 2 {
		return 0
	}
	steps := float64(bits.Len(uint(n - 1))) // ⌈log2 n⌉
	others := float64(n - 1)
	alpha, whole := w.Alpha.Seconds(), float64(t.Bytes)/w.Beta
	part := whole * others / float64(n)
	pieces := math.Ceil(float64(t.Bytes) / piece)
	var s float64
	switch t.Op {
	case "all_reduce", "reduce":
		switch {
		case t.Bytes*n <= short:
			s = steps*alpha + others*whole
		case w.Library:
			s = 2*steps*alpha + 2*part
		default:
			s = pieces*(others+steps)*alpha + 2*part
		}
	case "all_gather", "barrier":
		s = pieces*steps*alpha + part
	case "reduce_scatter", "all_to_all":
		s = pieces*others*alpha + part
	case "broadcast":
		s = steps * (alpha + whole)
	default: // send, recv
		s = alpha + whole
	}
	return time.Duration(math.Round(s * float64(time.Second)))
}

// agreement is what ranks gather before a run.
const agreement = 16

// Times is a projection.
type Times struct {
	Step     time.Duration
	Compute  time.Duration // kernels, and what is between them
	Transfer time.Duration // all collectives, one after another
	Waited   time.Duration // the step stood still for transfers and for the agreement
}

// Project goes through a schedule as a rank does: kernels one after another; a transfer begins once it is
// asked for and the one before has ended, sends and receives at once; a wait lasts until its transfer has
// ended. between is the measured time between kernels.
func (w Network) Project(schedule []Item, between time.Duration, n int) Times {
	var out Times
	var free time.Duration // when the transfer before has ended
	ends := map[*Transfer]time.Duration{}
	now := w.Cost(&Transfer{Op: "all_gather", Bytes: agreement * n}, n)
	out.Waited = now
	for _, it := range schedule {
		switch {
		case it.Begin != nil:
			cost := w.Cost(it.Begin, n)
			out.Transfer += cost
			if it.Begin.Op == "send" || it.Begin.Op == "recv" {
				ends[it.Begin] = now + cost
				continue
			}
			free = max(now, free) + cost
			ends[it.Begin] = free
		case it.Wait != nil:
			if end := ends[it.Wait]; end > now {
				out.Waited += end - now
				now = end
			}
		default:
			now += it.Kernel
			out.Compute += it.Kernel
		}
	}
	out.Compute += between
	out.Step = now + between
	return out
}
