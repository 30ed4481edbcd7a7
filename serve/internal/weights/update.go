package weights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"time"

	"github.com/loris-ml/loris/aoti"
	"github.com/loris-ml/loris/aoti/container"
	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/safetensors"
	"github.com/loris-ml/loris/serve/internal/inference"
)

// Update says what becomes of a file of weights.
type Update struct {
	// Name is that of the new set; empty takes the first digits of the file's sha256.
	Name string
	// Partial lets the file leave tensors out: they are those of the active set.
	Partial bool
	// KeepActive saves the set, and runs go on with the one that is active.
	KeepActive bool
	// Check makes the set, tries it on the golden inputs, and forgets it.
	Check bool
	// SHA256 is what the file must have, in hexadecimal; empty is not compared.
	SHA256 string
	// Source says where the file came from.
	Source string
}

// Updated says what an update did.
type Updated struct {
	Name    string
	Active  bool
	Tensors int   // that the file gave
	Bytes   int64 // of those
	// Update is how long it took to make the set from the file's tensors, fold and try
	// it, and Swap how long runs could not tell which set they would get.
	Update, Swap time.Duration
}

var nameOfSet = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$`)

// Update makes a set of a safetensors file, and unless u says otherwise activates
// it. The file is read tensor by tensor into the memory that the set will use; what
// does not fit the model is refused when the header is read. Nothing changes if it
// fails: what does not fit, a file that is cut short, one with another digest and
// answers to golden inputs that are not good are InvalidArgument; a name that is
// taken is AlreadyExists; another change that is under way is Conflict.
func (s *Sets) Update(ctx context.Context, r io.Reader, u Update) (_ *Updated, err error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.changing.Unlock()
	if err := s.checkName(u.Name); err != nil {
		return nil, err
	}
	digest := sha256.New()
	values, err := s.read(ctx, io.TeeReader(r, digest))
	defer releaseAll(values)
	if err != nil {
		return nil, err
	}
	if err := checkDigest(digest, u.SHA256); err != nil {
		return nil, err
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	if u.Name == "" {
		u.Name = sum[:16]
		if err := s.checkName(u.Name); err != nil {
			return nil, err
		}
	}
	done := &Updated{Name: u.Name, Tensors: len(values)}
	for _, v := range values {
		done.Bytes += int64(v.Shape().Bytes())
	}
	begin := time.Now()
	if err := s.make(ctx, values, u); err != nil {
		return nil, err
	}
	done.Update = time.Since(begin)
	if u.Check {
		return done, s.forget(ctx, u.Name)
	}
	s.mu.Lock()
	s.sets = append(s.sets, Set{Name: u.Name, Bytes: s.sets[0].Bytes, Made: time.Now(), Source: u.Source, SHA256: sum})
	s.mu.Unlock()
	if !u.KeepActive {
		if done.Swap, err = s.activate(ctx, u.Name); err != nil {
			return nil, err
		}
		done.Active = true
	}
	return done, s.trim(ctx, u.Name)
}

func (s *Sets) checkName(name string) error {
	if name == "" {
		return nil
	}
	if !nameOfSet.MatchString(name) {
		return inference.Errorf(inference.InvalidArgument, "weight_version %q: a name begins with a letter or a digit and has up to 128 of letters, digits and ._:@+-", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(name) >= 0 {
		return inference.Errorf(inference.AlreadyExists, "there is a set of weights %q: activate or drop it, or take another name", name)
	}
	return nil
}

func checkDigest(h hash.Hash, want string) error {
	if want == "" {
		return nil
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return inference.Errorf(inference.InvalidArgument, "the file has the sha256 %s, not %s", got, want)
	}
	return nil
}

// make saves a set of the values under the name, folded and tried.
func (s *Sets) make(ctx context.Context, values map[string]backend.Buffer, u Update) error {
	// What an update leaves out it takes from the inactive set where there is one.
	if err := s.c.FreeInactive(ctx); err != nil {
		return statusOf(err)
	}
	opts := []container.UpdateOption{container.UserManaged()}
	if u.Partial {
		opts = append(opts, container.Partial())
	}
	if err := s.c.Update(ctx, values, container.Inactive, opts...); err != nil {
		return statusOf(err)
	}
	err := s.c.Fold(ctx, container.Inactive)
	if err == nil {
		err = s.c.Save(ctx, u.Name, container.Inactive)
	}
	if err != nil {
		return errors.Join(statusOf(err), s.c.FreeInactive(ctx))
	}
	if err := s.o.Golden.try(ctx, s.c, u.Name); err != nil {
		return errors.Join(err, s.forget(ctx, u.Name))
	}
	return nil
}

// forget drops a set that was made and never listed.
func (s *Sets) forget(ctx context.Context, name string) error {
	ctx = context.WithoutCancel(ctx)
	return errors.Join(s.c.Drop(ctx, name), s.c.FreeInactive(ctx))
}

// read returns the tensors of a file, each of which the model has, in that shape.
func (s *Sets) read(ctx context.Context, r io.Reader) (values map[string]backend.Buffer, err error) {
	file, err := safetensors.NewReader(r)
	if err != nil {
		return nil, fileError(err)
	}
	shapes, err := s.fit(file.Tensors())
	if err != nil {
		return nil, err
	}
	values = make(map[string]backend.Buffer, len(shapes))
	for i := 0; ; i++ {
		if err := ctx.Err(); err != nil {
			return values, err
		}
		info, err := file.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return values, fileError(err)
		}
		if values[info.Name], err = readTensor(file, shapes[i]); err != nil {
			return values, fileError(fmt.Errorf("tensor %q: %w", info.Name, err))
		}
	}
	if n, err := io.CopyN(io.Discard, r, 1); n != 0 || err != io.EOF {
		if err == nil {
			err = fmt.Errorf("bytes follow the %d that its header says", file.Size())
		}
		return values, fileError(err)
	}
	return values, nil
}

// readTensor reads the data of the reader's tensor into memory as models have it.
func readTensor(file *safetensors.Reader, shape ir.Shape) (b backend.Buffer, err error) {
	defer func() {
		if r := recover(); r != nil {
			oom, ok := r.(error)
			if !ok {
				panic(r)
			}
			err = inference.Errorf(inference.ResourceExhausted, "%w", oom)
		}
	}()
	b = aoti.NewBuffer(shape.DType(), shape.Dims()...)
	data, err := b.Bytes(context.Background())
	if err == nil {
		_, err = io.ReadFull(file, data)
	}
	if err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

// fit returns the shapes of a file's tensors, or says what does not fit the model.
func (s *Sets) fit(tensors []safetensors.Info) ([]ir.Shape, error) {
	want := map[string]backend.Constant{}
	for _, k := range s.c.Constants() {
		want[k.Name] = k
		if k.OriginalName != "" {
			want[k.OriginalName] = k
		}
	}
	shapes := make([]ir.Shape, len(tensors))
	var errs []error
	for i, info := range tensors {
		k, known := want[info.Name]
		shape, err := tensorfile.Shape(info)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("tensor %q: %w", info.Name, err))
		case !known:
			errs = append(errs, &container.ConstantError{Name: info.Name, Problem: container.ErrUnknown})
		case k.FromFolded:
			errs = append(errs, &container.ConstantError{Name: info.Name, Problem: container.ErrFolded})
		case shape != k.Shape:
			errs = append(errs, fmt.Errorf("constant %q: got %v, the model has %v", info.Name, shape, k.Shape))
		}
		shapes[i] = shape
	}
	if err := errors.Join(errs...); err != nil {
		return nil, inference.Errorf(inference.InvalidArgument, "the file does not fit the model: %w", err)
	}
	return shapes, nil
}

func releaseAll(values map[string]backend.Buffer) {
	for _, b := range values {
		if b != nil {
			b.Release()
		}
	}
}

// fileError returns what is wrong with a file as the client's mistake, unless the
// file says something else.
func fileError(err error) error {
	var e *inference.Error
	switch {
	case errors.As(err, &e), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return inference.Errorf(inference.InvalidArgument, "the file of weights ends too early: %w", err)
	}
	return inference.Errorf(inference.InvalidArgument, "the file of weights: %w", err)
}

// statusOf returns an error of a container with its kind.
func statusOf(err error) error {
	var constant *container.ConstantError
	var version *container.VersionError
	var oom *ir.OutOfMemory
	switch {
	case err == nil:
		return nil
	case errors.As(err, &constant):
		return inference.Errorf(inference.InvalidArgument, "the file does not fit the model: %w", err)
	case errors.As(err, &version):
		return inference.Errorf(inference.NotFound, "%w", err)
	case errors.As(err, &oom):
		return inference.Errorf(inference.ResourceExhausted, "%w", err)
	case errors.Is(err, container.ErrClosed):
		return inference.Errorf(inference.Unavailable, "the model is being unloaded: %w", err)
	}
	return err
}
