package conv

import (
	"github.com/loris-ml/loris/internal/kernels/gemm"
	"github.com/loris-ml/loris/internal/kernels/vec"
)

// load copies the part of image u.n+image that the unit's outputs meet, with
// zeros where it is outside.
func load[A Float, T Element](w *worker[A], dst []A, x []T, p *Plan[A], u *unit, image int) {
	lo := [3]int{u.d, u.h, u.w}
	n := [3]int{u.dn, u.hn, u.wn}
	if p.form == Winograd {
		n[1], n[2] = covered(u.hn), covered(u.wn)
	}
	for d := range lo {
		step := p.g.inStep(d)
		lo[d] = lo[d]*step + u.ph.min[d]
		n[d] = (n[d]-1)*step + u.ph.span[d] + 1
	}
	base := (u.n+image)*p.x.Batch + u.grp*p.channels*p.x.Channel
	r := &p.region
	from, to := clip(lo[2], n[2], p.g.In[2])
	for i0 := range n[0] {
		for i1 := range n[1] {
			at0, at1 := lo[0]+i0, lo[1]+i1
			out := dst[i0*r.Spatial[0]+i1*r.Spatial[1]:]
			inside := uint(at0) < uint(p.g.In[0]) && uint(at1) < uint(p.g.In[1]) && from < to
			src := base + at0*p.x.Spatial[0] + at1*p.x.Spatial[1] + (lo[2]+from)*p.x.Spatial[2]
			if r.Channel == 1 {
				loadPixels(w, out, x, p, src, n[2], from, to, inside)
			} else {
				loadPlanes(out, x, p, src, n[2], from, to, inside)
			}
		}
	}
}

// clip returns which of n positions from lo on are inside 0..size-1.
func clip(lo, n, size int) (from, to int) {
	return min(max(-lo, 0), n), max(min(size-lo, n), 0)
}

// loadPixels copies a row of n pixels whose channels adjoin.
func loadPixels[A Float, T Element](w *worker[A], dst []A, x []T, p *Plan[A], src, n, from, to int, inside bool) {
	c, step := p.channels, p.region.Spatial[2]
	if !inside {
		clear(dst[:n*step])
		return
	}
	clear(dst[:from*step])
	clear(dst[to*step : n*step])
	dst = dst[from*step:]
	if p.form == Pairs {
		loadPairs(w, dst, any(x).([]vec.BF16)[src:], p, to-from)
		return
	}
	s := &p.x
	if s.Channel == 1 {
		if s.Spatial[2] == c && step == c {
			vec.Load(dst, x[src:src+(to-from)*c])
			return
		}
		for i := range to - from {
			vec.Load(dst[i*step:], x[src+i*s.Spatial[2]:][:c])
		}
		return
	}
	if wide, ok := any(x).([]A); ok && s.Spatial[2] == 1 {
		gemm.Transpose(dst, step, wide[src:], s.Channel, c, to-from)
		return
	}
	if s.Spatial[2] == 1 {
		loadWidened(w, dst, step, x[src:], s.Channel, c, to-from)
		return
	}
	for i := range to - from {
		at := src + i*s.Spatial[2]
		for k := range c {
			dst[i*step+k] = vec.Wide[A](x[at])
			at += s.Channel
		}
	}
}

// widened is how many channels of narrow elements are widened before they are transposed.
const widened = 16

// loadWidened does so for narrow elements whose columns adjoin, channel elements between the
// channels.
func loadWidened[A Float, T Element](w *worker[A], dst []A, step int, x []T, channel, channels, n int) {
	w.line = grow(w.line, widened*n)
	for k := 0; k < channels; k += widened {
		some := min(widened, channels-k)
		for i := range some {
			vec.Load(w.line[i*n:], x[(k+i)*channel:][:n])
		}
		gemm.Transpose(dst[k:], step, w.line, n, some, n)
	}
}

// loadPlanes copies a row of n pixels of each channel.
func loadPlanes[A Float, T Element](dst []A, x []T, p *Plan[A], src, n, from, to int, inside bool) {
	for k := range p.channels {
		row := dst[k*p.region.Channel:][:n]
		if !inside {
			clear(row)
			continue
		}
		clear(row[:from])
		clear(row[to:])
		at := src + k*p.x.Channel
		vec.Load(row[from:], x[at:at+to-from])
	}
}
