package container

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
)

// UpdateOption changes how an update works.
type UpdateOption func(*updateOptions)

type updateOptions struct{ partial, shared, keep bool }

// Partial lets an update leave constants out: they keep the values of the set
// that is updated, or of the active one if there is no inactive set.
func Partial() UpdateOption { return func(o *updateOptions) { o.partial = true } }

// UserManaged makes the set use the given buffers without a copy, where the
// model can. The set takes references to them; their contents must not change
// while it exists.
func UserManaged() UpdateOption { return func(o *updateOptions) { o.shared = true } }

// KeepInactive makes an update of the active set leave the inactive one alone,
// for which there may be three sets for some time.
func KeepInactive() UpdateOption { return func(o *updateOptions) { o.keep = true } }

// Update makes a new set of constants and puts it in the place of the active or
// the inactive one. Values are dense, on any device, by the name inside the
// model or the original name; they are copied (but see UserManaged) and stay the
// caller's. What folding computes from them is computed anew, by Fold or by the
// first run.
//
// The update is full unless Partial is given: then every constant must have a
// value, but for folded ones, tensors that the traced code held without a name
// ("_tensor_constant0"), buffers, and empty ones; those are carried over from
// the active set. The errors of all constants are returned together, each a
// *ConstantError that wraps ErrMissing, ErrUnknown, ErrAmbiguous, ErrTwice,
// ErrFolded, ir.ErrShape or ir.ErrDType, and then nothing has changed.
//
// Runs go on meanwhile; those in flight keep their set. The new set is built in
// the inactive place: an inactive set that there was is freed first, also when
// the active one is updated (but see KeepInactive), and is gone if copying
// fails. Save it to keep it.
func (c *Container) Update(ctx context.Context, values map[string]backend.Buffer, which Which, opts ...UpdateOption) error {
	if err := ir.CheckContext("container.Update", ctx); err != nil {
		return err
	}
	o := options(opts)
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	given, err := c.resolve(values, o.partial)
	if err != nil {
		return err
	}
	has := make([]bool, len(given))
	for i, v := range given {
		has[i] = v != nil
	}
	return c.replace(ctx, which, o, has, func(i int) (backend.Buffer, error) {
		return c.first.PackConstant(ctx, i, given[i], !o.shared)
	})
}

func options(opts []UpdateOption) updateOptions {
	var o updateOptions
	for _, f := range opts {
		f(&o)
	}
	return o
}

// resolve returns the values by constant, checked.
func (t *sets) resolve(values map[string]backend.Buffer, partial bool) ([]backend.Buffer, error) {
	var errs []error
	fail := func(name string, problem error) {
		errs = append(errs, &ConstantError{Name: name, Problem: problem})
	}
	given := make([]backend.Buffer, len(t.info))
	for _, name := range sorted(values) {
		i, known := t.index[name]
		v := values[name]
		switch {
		case !known:
			fail(name, ErrUnknown)
		case i < 0:
			fail(name, ErrAmbiguous)
		case given[i] != nil:
			fail(name, ErrTwice)
		case v == nil:
			if partial || exempt(t.info[i]) {
				fail(name, ErrMissing)
			}
		case t.info[i].FromFolded:
			fail(name, ErrFolded)
		default:
			given[i] = v
			if problem := mismatch(v.Shape(), t.info[i].Shape); problem != nil {
				fail(name, problem)
			}
		}
	}
	for i, k := range t.info {
		if !partial && given[i] == nil && !exempt(k) {
			fail(k.Name, ErrMissing)
		}
	}
	return given, errors.Join(errs...)
}

// exempt reports whether a full update may leave the constant out.
func exempt(k backend.Constant) bool {
	return k.FromFolded || k.Bytes == 0 || k.Type == backend.ConstantBuffer || k.Type == backend.ConstantTensor ||
		strings.HasPrefix(k.Name, "_tensor_constant")
}

func mismatch(got, want ir.Shape) error {
	if got.DType() != want.DType() {
		return fmt.Errorf("%w: got %v, the model has %v", ir.ErrDType, got, want)
	}
	if got != want {
		return fmt.Errorf("%w: got %v, the model has %v", ir.ErrShape, got, want)
	}
	return nil
}

func sorted(m map[string]backend.Buffer) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// replace builds a set of what pack returns, for the constants that has says,
// and what is carried over, and puts it in its place. The caller holds admin.
func (c *Container) replace(ctx context.Context, which Which, o updateOptions, has []bool, pack func(i int) (backend.Buffer, error)) error {
	values := c.carryOver(which, o.partial, has)
	if which == Inactive || !o.keep {
		c.dropInactive()
	}
	for i := range values {
		if !has[i] {
			continue
		}
		err := ctx.Err()
		if err == nil {
			err = guard(func() (err error) {
				values[i], err = pack(i)
				return err
			})
		}
		if err == nil && values[i] == nil {
			err = ErrMissing
		}
		if err != nil {
			releaseAll(values)
			return &ConstantError{Name: c.info[i].Name, Problem: err}
		}
	}
	s := c.newSet(values)
	s.enterPlace()
	if which == Active {
		c.leavePlace(c.active.Swap(s))
		return nil
	}
	c.setsMu.Lock()
	c.inactive = s
	c.setsMu.Unlock()
	return nil
}

// carryOver returns new references to the values of the constants that an
// update leaves out.
func (c *Container) carryOver(which Which, partial bool, has []bool) []backend.Buffer {
	base := c.active.Load()
	if which == Inactive && partial && c.inactive != nil {
		base = c.inactive
	}
	values := make([]backend.Buffer, len(has))
	for i, v := range base.given {
		if v != nil && !has[i] {
			v.Retain()
			values[i] = v
		}
	}
	return values
}

// dropInactive empties the inactive place. The caller holds admin.
func (c *Container) dropInactive() {
	c.setsMu.Lock()
	s := c.inactive
	c.inactive = nil
	c.setsMu.Unlock()
	if s != nil {
		c.leavePlace(s)
	}
}
