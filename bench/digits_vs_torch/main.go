// Command digits_vs_torch trains the perceptron of the digits example in Loris
// and in PyTorch from the same weights, on the same batches in the same order,
// and compares the loss of each step. It fails if two differ by more than the
// limit.
//
//	go run ./bench/digits_vs_torch --python .venv/bin/python
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/examples/digits/train"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/safetensors"
)

//go:embed compare.py
var script []byte

// settings are the flags.
type settings struct {
	python, device string
	steps          int
	limit          float64
	train.Config
}

func main() {
	s := settings{Config: train.Defaults()}
	flag.StringVar(&s.python, "python", "python3", "Python with torch")
	flag.StringVar(&s.device, "device", "cpu", "device that Loris computes on")
	flag.IntVar(&s.steps, "steps", 20, "training steps")
	flag.IntVar(&s.Batch, "batch", s.Batch, "images of a step")
	flag.Float64Var(&s.LR, "lr", s.LR, "learning rate of Adam")
	flag.Uint64Var(&s.Seed, "seed", s.Seed, "seed of weights and order")
	flag.Float64Var(&s.limit, "limit", 1e-4, "largest difference of two losses")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "digits_vs_torch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, s settings) error {
	folder, err := os.MkdirTemp("", "digits_vs_torch")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if s.steps < 1 || s.Batch < 1 {
		return errors.New("--steps and --batch must be at least 1")
	}
	data, _, err := train.Data()
	if err != nil {
		return err
	}
	batches := take(data, s)
	ours, err := trainLoris(ctx, folder, batches, s)
	if err != nil {
		return err
	}
	if err := writeBatches(filepath.Join(folder, "batches.safetensors"), batches); err != nil {
		return err
	}
	version, theirs, err := trainTorch(ctx, folder, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "digits, %d steps of %d images, Adam with rate %g: Loris on %s, PyTorch %s\n", s.steps, s.Batch, s.LR, s.device, version)
	return compare(w, ours, theirs, s.limit)
}

// take returns the batches of the first steps, over as many epochs as it takes.
func take(data *digits.Dataset, s settings) []*digits.Dataset {
	var out []*digits.Dataset
	for epoch := uint64(1); ; epoch++ {
		for b := range data.Batches(s.Batch, s.Seed, epoch) {
			if out = append(out, b); len(out) == s.steps {
				return out
			}
		}
	}
}

// trainLoris writes the initial weights to the folder, trains, and returns the
// loss of each step.
func trainLoris(ctx context.Context, folder string, batches []*digits.Dataset, s settings) (losses []float64, err error) {
	d, err := loris.ParseDevice(s.device)
	if err != nil {
		return nil, err
	}
	session, err := loris.New(loris.WithDevice(d), loris.WithSeed(s.Seed))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	m := session.With()
	model := train.Model(m, s.Hidden, 0)
	if err := nn.Save(ctx, filepath.Join(folder, "weights.safetensors"), model, nil); err != nil {
		return nil, err
	}
	opt := optim.NewAdam(model.Params(), s.LR)
	var results []*loris.Tensor
	for _, b := range batches {
		x := m.FromSlice(b.Pixels, b.Len(), digits.Features)
		loss := model.Forward(x).CrossEntropy(m.FromSlice(b.Labels))
		opt.Minimize(loss)
		results = append(results, loss.Keep())
		if err := session.MarkStep(ctx); err != nil {
			return nil, err
		}
	}
	for _, r := range results {
		v, err := r.Item(ctx)
		if err != nil {
			return nil, err
		}
		losses = append(losses, v)
	}
	return losses, nil
}

// writeBatches writes the images and labels of step i as x<i> and y<i>.
func writeBatches(path string, batches []*digits.Dataset) error {
	var list []safetensors.Tensor
	for i, b := range batches {
		n, k := int64(b.Len()), strconv.Itoa(i)
		var x, y []byte
		for _, v := range b.Pixels {
			x = binary.LittleEndian.AppendUint32(x, math.Float32bits(v))
		}
		for _, v := range b.Labels {
			y = binary.LittleEndian.AppendUint64(y, uint64(v))
		}
		list = append(list,
			safetensors.Tensor{Name: "x" + k, DType: safetensors.F32, Shape: []int64{n, digits.Features}, Data: x},
			safetensors.Tensor{Name: "y" + k, DType: safetensors.I64, Shape: []int64{n}, Data: y})
	}
	return safetensors.WriteFile(path, list, nil)
}

// trainTorch runs the script on the folder.
func trainTorch(ctx context.Context, folder string, s settings) (version string, losses []float64, err error) {
	path := filepath.Join(folder, "compare.py")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, s.python, path, folder, strconv.FormatFloat(s.LR, 'g', -1, 64))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", nil, fmt.Errorf("%s compare.py: %w (it needs torch; --python chooses another)", s.python, err)
	}
	var r struct {
		Torch  string
		Losses []float64
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		return "", nil, fmt.Errorf("what compare.py printed: %w", err)
	}
	return r.Torch, r.Losses, nil
}

// compare prints the losses and fails if two differ by more than the limit, or
// one is no number.
func compare(w io.Writer, ours, theirs []float64, limit float64) error {
	if len(ours) != len(theirs) {
		return fmt.Errorf("%d losses and %d of PyTorch", len(ours), len(theirs))
	}
	fmt.Fprintln(w, "step     Loris       PyTorch     difference")
	worst := 0.0
	for i := range ours {
		d := math.Abs(ours[i] - theirs[i])
		fmt.Fprintf(w, "%4d  %.8f  %.8f  %.2e\n", i+1, ours[i], theirs[i], d)
		if math.IsNaN(d) || d > worst { // a NaN stays the worst
			worst = d
		}
	}
	fmt.Fprintf(w, "largest difference %.2e, limit %.0e\n", worst, limit)
	if !(worst <= limit) {
		return fmt.Errorf("the losses differ by %.2e, more than %.0e", worst, limit)
	}
	return nil
}
