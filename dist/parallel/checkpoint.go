package parallel

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/dist"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/internal/tensorfile"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/safetensors"
)

// indexName is the file of a checkpoint's folder that is replaced when all shards are there: what it names is
// the checkpoint.
const indexName = "checkpoint.safetensors.index.json"

// Checkpoint is the state from which training resumes on any number of ranks. It is a folder that all ranks
// reach, with safetensors files, one for each rank, and their index, which safetensors.Open, nn.Load and
// transformers read. It has whole tensors by their names: those of the model begin with "model.", those of
// the optimiser's state with "optim.".
//
// A checkpoint is replaced whole or not at all: by the index, after all ranks have written their files. If a
// rank cannot write or ends, the one from before stays.
type Checkpoint struct {
	Group *dist.Group
	Model nn.Module
	// Layers are those that divide parameters of the model; nil if none are divided.
	Layers *Layers
	// Params are those whose parts the model has as its parameters.
	Params []*Param
	// Optimizer is that of the model's parameters; nil if there is none or Divided is it.
	Optimizer *optim.Optimizer
	Divided   *Optimizer
	// Step is a number of the caller's, such as the epoch or the batch.
	Step int64
}

// entry is a tensor of the checkpoint.
type entry struct {
	name  string
	v     *loris.Variable
	whole loris.Shape
	// join records the whole tensor from the parts of all ranks, part the part of a whole one. Both are nil of
	// what each rank has whole.
	join func() *loris.Tensor
	part func(whole *loris.Tensor) *loris.Tensor
}

// Save writes the checkpoint to a folder, which it makes. All ranks call it, between steps, and get an error
// if one of them does. Each has its own share of the tensors in memory meanwhile. It blocks until it is done
// or ctx ends.
func (c *Checkpoint) Save(ctx context.Context, dir string) error {
	if err := ir.CheckContext("parallel.Save", ctx); err != nil {
		return err
	}
	if err := c.save(ctx, dir); err != nil {
		return fmt.Errorf("parallel: save %s: %w", dir, err)
	}
	return nil
}

func (c *Checkpoint) save(ctx context.Context, dir string) error {
	list, err := c.entries()
	if err != nil {
		return err
	}
	tokens, err := c.exchange(ctx, rand.Int64())
	if err != nil {
		return err
	}
	shares := share(list, c.Group.Size())
	names := make([]string, len(shares))
	for r := range names {
		names[r] = fmt.Sprintf("shard-%016x-%05d-of-%05d.safetensors", uint64(tokens[0]), r+1, len(shares))
	}
	own := filepath.Join(dir, names[c.Group.Rank()])
	tensors, err := c.fetch(ctx, list, shares[c.Group.Rank()])
	if err != nil {
		return err // of the group, so that all have it
	}
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = safetensors.WriteFile(own, tensors, c.metadata())
	}
	if err = c.agree(ctx, err); err == nil {
		if c.Group.Rank() == 0 {
			err = c.commit(dir, list, shares, names)
		}
		err = c.agree(ctx, err)
	}
	if err != nil {
		_ = os.Remove(own) // not part of any checkpoint; it may not even be there
		return err
	}
	if c.Group.Rank() == 0 {
		return sweep(dir, names)
	}
	return nil
}

// entries lists the tensors, in the same order on all ranks.
func (c *Checkpoint) entries() ([]entry, error) {
	if c.Group == nil || c.Model == nil || c.Optimizer != nil && c.Divided != nil {
		return nil, fmt.Errorf("%w: a checkpoint has a group, a model and at most one optimiser", loris.ErrArg)
	}
	var out []entry
	params := map[string]*loris.Variable{}
	divided := map[*loris.Variable]*Param{}
	for _, p := range c.Params {
		divided[p.part] = p
	}
	add := func(name string, v, like *loris.Variable) {
		e := entry{name: name, v: v, whole: v.Shape()}
		if p := divided[like]; p != nil && v.Shape().SameDims(like.Shape()) {
			e = wholeEntry(name, v, p.group, p.dims)
		} else if c.Layers != nil {
			if cut, ok := c.Layers.cuts[like]; ok && v.Shape().SameDims(like.Shape()) {
				dims := v.Shape().Dims()
				dims[cut.dim] *= c.Layers.group.Size()
				e.whole = loris.MakeShape(v.Shape().DType(), dims...)
				e.join = func() *loris.Tensor { return c.Layers.join(v, cut) }
				e.part = func(x *loris.Tensor) *loris.Tensor { return c.Layers.part(x, cut) }
			}
		}
		out = append(out, e)
	}
	for _, vs := range []iter.Seq2[string, *loris.Variable]{c.Model.Params(), c.Model.Buffers()} {
		for name, v := range vs {
			params[name] = v
			add("model."+name, v, v)
		}
	}
	if c.Optimizer != nil {
		for name, v := range c.Optimizer.State() {
			add("optim."+name, v, params[name[:max(strings.LastIndexByte(name, '.'), 0)]])
		}
	}
	if c.Divided != nil {
		for name, v := range c.Divided.inner.State() {
			e, err := c.dividedState(name, v)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// dividedState is the entry of a state of which this rank has a part.
func (c *Checkpoint) dividedState(name string, v *loris.Variable) (entry, error) {
	d := c.Divided
	e := entry{name: "optim." + name, v: v, whole: v.Shape()}
	i := slices.Index(d.names, name[:max(strings.LastIndexByte(name, '.'), 0)])
	if i < 0 {
		return e, nil // of the optimiser as a whole
	}
	if c.Layers != nil {
		if _, ok := c.Layers.cuts[d.params[i]]; ok {
			return e, fmt.Errorf("%w: %s is divided by layers and its optimiser's state among ranks, which has no whole form: save with an optimiser that is not divided", loris.ErrArg, d.names[i])
		}
	}
	return wholeEntry(e.name, v, d.group, d.params[i].Shape().Dims()), nil
}

// wholeEntry is the entry of a variable of which each rank has what Group.Part returns.
func wholeEntry(name string, v *loris.Variable, g *dist.Group, dims []int) entry {
	return entry{
		name: name, v: v, whole: loris.MakeShape(v.Shape().DType(), dims...),
		join: func() *loris.Tensor { return g.Whole([]*loris.Tensor{v.Value()}, [][]int{dims})[0] },
		part: g.Part,
	}
}

// share divides entries among ranks by their bytes.
func share(list []entry, ranks int) [][]int {
	out, bytes := make([][]int, ranks), make([]int, ranks)
	for i, e := range list {
		r := slices.Index(bytes, slices.Min(bytes))
		out[r] = append(out[r], i)
		bytes[r] += e.whole.Bytes()
	}
	return out
}

// fetch reads this rank's share. All ranks join what is divided, one tensor at a time.
func (c *Checkpoint) fetch(ctx context.Context, list []entry, own []int) ([]safetensors.Tensor, error) {
	var out []safetensors.Tensor
	for i, e := range list {
		mine := slices.Contains(own, i)
		x := e.v.Value()
		if e.join != nil {
			x = e.join()
			if !mine {
				if err := x.Wait(ctx); err != nil {
					return nil, err
				}
			}
		}
		if !mine {
			continue
		}
		data, err := loris.Fetch(ctx, x)
		if err != nil {
			return nil, err
		}
		t, ok := tensorfile.Tensor(e.name, e.whole, data[0])
		if !ok {
			return nil, fmt.Errorf("tensor %q: %w: files have no %v", e.name, loris.ErrDType, e.whole.DType())
		}
		out = append(out, t)
	}
	return out, nil
}

// exchange returns a number of each rank.
func (c *Checkpoint) exchange(ctx context.Context, mine int64) ([]int64, error) {
	return c.Group.AllGather(c.session().With().FromSlice([]int64{mine}, 1), 0).Int64s(ctx)
}

// agree returns an error on all ranks if one has one.
func (c *Checkpoint) agree(ctx context.Context, mine error) error {
	failed := int64(0)
	if mine != nil {
		failed = 1
	}
	all, err := c.exchange(ctx, failed)
	if err != nil || mine != nil {
		return errors.Join(mine, err)
	}
	if r := slices.Index(all, 1); r >= 0 {
		return fmt.Errorf("rank %d could not write its part; the checkpoint from before stays", r)
	}
	return nil
}

func (c *Checkpoint) session() *loris.Session {
	for _, v := range c.Model.Params() {
		return v.Session()
	}
	return nil
}

func (c *Checkpoint) optimizer() *optim.Optimizer {
	if c.Divided != nil {
		return c.Divided.inner
	}
	return c.Optimizer
}

func (c *Checkpoint) metadata() map[string]string {
	meta := map[string]string{"format": "pt", tensorfile.MetaStep: strconv.FormatInt(c.Step, 10), tensorfile.MetaSeed: strconv.FormatUint(c.session().Seed(), 10)}
	if o := c.optimizer(); o != nil {
		maps.Copy(meta, o.Metadata())
	}
	return meta
}

// commit writes the index.
func (c *Checkpoint) commit(dir string, list []entry, shares [][]int, names []string) error {
	files := map[string][]safetensors.Info{}
	for r, own := range shares {
		for _, i := range own {
			t, _ := tensorfile.Tensor(list[i].name, list[i].whole, nil) // fetch has seen that files have the dtype
			files[names[r]] = append(files[names[r]], safetensors.Info{Name: t.Name, DType: t.DType, Shape: t.Shape})
		}
	}
	return safetensors.WriteIndex(filepath.Join(dir, indexName), files)
}

// sweep removes the shards of other checkpoints, also of those that were not finished.
func sweep(dir string, keep []string) error {
	found, err := filepath.Glob(filepath.Join(dir, "shard-*.safetensors"))
	if err != nil {
		return err
	}
	for _, path := range found {
		if !slices.Contains(keep, filepath.Base(path)) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// Load reads a checkpoint into the model, the optimiser and the session's seed, and sets Step. It must have
// exactly their tensors, as for nn.Load, and come from the same algorithm; the number of ranks may be another
// one. Each rank reads on its own; after an error of a rank nothing of it has changed. Call it between steps.
// It blocks while reading.
func (c *Checkpoint) Load(ctx context.Context, dir string) error {
	if err := ir.CheckContext("parallel.Load", ctx); err != nil {
		return err
	}
	if err := c.load(ctx, dir); err != nil {
		return fmt.Errorf("parallel: load %s: %w", dir, err)
	}
	return nil
}

func (c *Checkpoint) load(ctx context.Context, dir string) error {
	list, err := c.entries()
	if err != nil {
		return err
	}
	f, err := safetensors.Open(filepath.Join(dir, indexName))
	if err != nil {
		return err
	}
	defer f.Close()
	meta := f.Metadata()
	restore, err := c.optimizer().RestoreMetadata(meta)
	if err != nil {
		return err
	}
	step, err := strconv.ParseInt(meta[tensorfile.MetaStep], 10, 64)
	seed, seedErr := strconv.ParseUint(meta[tensorfile.MetaSeed], 10, 64)
	if err := errors.Join(err, seedErr); err != nil {
		return fmt.Errorf("%w: %w", optim.ErrCheckpoint, err)
	}
	if err := match(f, list); err != nil {
		return err
	}
	vars, values := make([]*loris.Variable, len(list)), make([]*loris.Tensor, len(list))
	for i, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if values[i], err = e.read(ctx, f); err != nil {
			return err
		}
		vars[i] = e.v
	}
	if err := loris.Publish(ctx, vars, values); err != nil {
		return err
	}
	if err := restore(ctx); err != nil {
		return err
	}
	c.session().SetSeed(seed)
	c.Step = step
	return nil
}

// match reports all tensors that are missing, not expected or of another shape.
func match(f *safetensors.File, list []entry) error {
	files := map[string]safetensors.Info{}
	var order []string
	for _, info := range f.Tensors() {
		files[info.Name] = info
		order = append(order, info.Name)
	}
	places := make([]tensorfile.Place, len(list))
	for i, e := range list {
		places[i] = tensorfile.Place{Name: e.name, Shape: e.whole}
	}
	equal := func(file, own loris.Shape) bool { return file == own }
	return tensorfile.Match(files, order, places, equal).Err(true)
}

// read returns the value of the entry's variable, this rank's part computed.
func (e *entry) read(ctx context.Context, f *safetensors.File) (x *loris.Tensor, err error) {
	shape, data, err := tensorfile.Read(f, e.name)
	if err != nil {
		return nil, err
	}
	err = loris.Try(func() {
		x = e.v.Session().With(loris.On(e.v.Value().Device())).FromBytes(data, shape)
		if e.part != nil {
			x = e.part(x)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", e.name, err)
	}
	return x, x.Wait(ctx) // so that the whole tensor goes before the next is read
}
