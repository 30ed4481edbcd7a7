package loris

import (
	"github.com/loris-ml/loris/internal/executor"
)

// Snapshot is the committed values of variables at one moment. No step overwrites them while it is
// held, that is until Release or until nothing refers to it any more. Its methods are safe for
// concurrent use.
type Snapshot executor.Snapshot

func (sn *Snapshot) ex() *executor.Snapshot { return (*executor.Snapshot)(sn) }

// Snapshot returns the committed values that variables have at one moment. It does not wait for
// steps whose work is under way: whoever reads a value does. It panics with an *OpError wrapping
// ErrUncommitted for a variable that is being made in a Step.
//
// To serve a model while another goroutine trains it, serve with a Fork. What a fork records
// between two syncs is consistent by itself; where a request syncs several times, or several
// requests shall have the same weights, the fork uses a snapshot:
//
//	snap := fork.Snapshot(weights...)
//	fork.Use(snap)
//	// requests
//	fork.Use(nil)
//	snap.Release()
func (s *Session) Snapshot(vars ...*Variable) *Snapshot {
	return (*Snapshot)(s.ex().Snapshot(variables(vars)...))
}

// Use makes s see the values of a snapshot where it has them, instead of the committed ones, until
// the snapshot is released or Use is called again; nil is no snapshot. Meanwhile s cannot assign
// these variables: Assign panics with an *OpError, and so does Use if s has assigned one in this
// step. A snapshot may be in use by several sessions.
func (s *Session) Use(sn *Snapshot) { s.ex().Use(sn.ex()) }

// Value returns the value of a variable in the snapshot, as a tensor of s, the session that took
// the snapshot or one that shares its caches. It panics with an *OpError wrapping ErrReleased after
// Release, and wrapping ErrArg if the snapshot lacks the variable.
func (sn *Snapshot) Value(s *Session, v *Variable) *Tensor {
	out := new(executor.Tensor)
	sn.ex().Value(s.ex(), v.ex(), out)
	return (*Tensor)(out)
}

// Release lets go of the values. Sessions that use the snapshot see the committed ones again, and
// tensors that were taken from it stay valid. Releasing it again does nothing.
func (sn *Snapshot) Release() { sn.ex().Release() }
