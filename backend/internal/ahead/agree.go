package ahead

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/backend/internal/plan"
	"github.com/loris-ml/loris/internal/check"
)

// agree makes drafts of one Program for several sizes agree on all but numbers: buffers get the bytes,
// and literals the elements, that they have in the first, which has the largest sizes.
func agree(drafts []*emitter) error {
	first := drafts[0]
	for _, e := range drafts[1:] {
		if len(e.steps) != len(first.steps) || len(e.Buffers) != len(first.Buffers) {
			return fmt.Errorf("%w: %d steps over %d buffers, for other sizes %d over %d: what is computed depends on sizes that vary",
				backend.ErrUnsupported, len(first.steps), len(first.Buffers), len(e.steps), len(e.Buffers))
		}
		var wrong []error
		for i := range e.steps {
			if s, t := &first.steps[i], &e.steps[i]; s.Instr != nil && (t.Instr == nil || s.Instr.Op != t.Instr.Op) || !slices.Equal(s.Reads, t.Reads) || !slices.Equal(s.Writes, t.Writes) {
				wrong = append(wrong, located(s, "what is computed depends on sizes that vary"))
			}
		}
		for i := range e.Buffers {
			if err := first.agreeOn(i, &e.Buffers[i]); err != nil {
				wrong = append(wrong, err)
			}
		}
		if len(wrong) > 0 {
			return errors.Join(wrong...)
		}
	}
	return nil
}

// agreeOn makes the buffer of a draft for smaller sizes like that of the receiver. Literals may be
// longer for larger sizes, as positions are, and begin alike.
func (e *emitter) agreeOn(i int, b *plan.Buffer) error {
	a := &e.Buffers[i]
	if a.Kind != b.Kind || a.Bytes < b.Bytes || a.Kind == plan.Constant && !bytes.HasPrefix(a.Data, b.Data) {
		return e.reader(i, "a number depends on sizes that vary")
	}
	b.Bytes, b.Data = a.Bytes, a.Data
	return nil
}

// reader returns an error about the first step that reads a buffer.
func (e *emitter) reader(buf int, why string) error {
	for i := range e.steps {
		if slices.Contains(e.steps[i].Reads, buf) {
			return located(&e.steps[i], why)
		}
	}
	return fmt.Errorf("%w: %s", backend.ErrUnsupported, why)
}

func located(s *step, why string) error {
	err := fmt.Errorf("%w: %s", backend.ErrUnsupported, why)
	if s.Instr == nil {
		return fmt.Errorf("the copy of a result: %w", err)
	}
	return check.Located(s.Instr, err)
}
