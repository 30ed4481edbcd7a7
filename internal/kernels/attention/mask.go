package attention

import (
	"math"

	"github.com/loris-ml/loris/internal/kernels/vec"
)

// mask applies the masks to the scores of n keys from k on and returns the
// scale that is left to apply.
func (u *unit[T, A]) mask(k, n int) A {
	scale := u.scale
	if u.Mask.Data != nil {
		u.add(k, n)
		scale = 1
	} else if hides := u.Keep.Data != nil || u.Causal; hides && !(scale > 0) {
		for i := range u.w.scores {
			u.w.scores[i] *= scale
		}
		scale = 1 // so that −Inf stays what it is
	}
	if u.Keep.Data != nil {
		u.drop(k, n)
	}
	if u.Causal {
		u.causal(k, n)
	}
	return scale
}

// add scales the scores and adds the mask.
func (u *unit[T, A]) add(k, n int) {
	m := &u.Mask
	if u.uniform(&m.Strides) {
		at := m.at(u.batch, 0, 0) + k*m.Strides[3]
		for j := range n {
			v := vec.Wide[A](m.Data[at+j*m.Strides[3]])
			row := u.w.scores[j*u.block:][:u.block]
			for i := range row {
				row[i] = row[i]*u.scale + v
			}
		}
		return
	}
	u.w.line = grow(u.w.line, n)
	for i := range u.n {
		head, q := u.column(i)
		at := m.at(u.batch, head, q) + k*m.Strides[3]
		s := u.w.scores[i:]
		if m.Strides[3] == 1 {
			vec.Load(u.w.line, m.Data[at:at+n])
		} else {
			for j := range n {
				u.w.line[j] = vec.Wide[A](m.Data[at+j*m.Strides[3]])
			}
		}
		for j, v := range u.w.line {
			s[j*u.block] = s[j*u.block]*u.scale + v
		}
	}
}

// uniform reports whether a mask is the same for all columns of the block.
func (u *unit[T, A]) uniform(s *[4]int) bool {
	return s[2] == 0 && (s[1] == 0 || u.Heads == 1)
}

// drop hides the keys that the mask does not keep.
func (u *unit[T, A]) drop(k, n int) {
	m := &u.Keep
	hidden := A(math.Inf(-1))
	if u.uniform(&m.Strides) {
		at := m.at(u.batch, 0, 0) + k*m.Strides[3]
		for j := range n {
			if m.Data[at+j*m.Strides[3]] != 0 {
				continue
			}
			row := u.w.scores[j*u.block:][:u.block]
			for i := range row {
				row[i] = hidden
			}
		}
		return
	}
	for i := range u.n {
		head, q := u.column(i)
		at := m.at(u.batch, head, q) + k*m.Strides[3]
		for j := range n {
			if m.Data[at+j*m.Strides[3]] == 0 {
				u.w.scores[j*u.block+i] = hidden
			}
		}
	}
}

// causal hides from each query the keys after it.
func (u *unit[T, A]) causal(k, n int) {
	hidden := A(math.Inf(-1))
	for i := range u.n {
		_, q := u.column(i)
		for j := max(q+1-k, 0); j < n; j++ {
			u.w.scores[j*u.block+i] = hidden
		}
	}
}
