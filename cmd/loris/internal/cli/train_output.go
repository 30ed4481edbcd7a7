package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/cmd/loris/internal/progress"
	"github.com/loris-ml/loris/examples/digits/train"
)

// number is a float whose JSON is null where there is none for it: a training
// that diverges has such losses.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// The objects of --json, one a line: trainStart, a trainEpoch for each epoch and
// trainSummary.
type trainStart struct {
	Event       string       `json:"event"` // "start"
	TrainImages int          `json:"train_images"`
	TestImages  int          `json:"test_images"`
	Parameters  int          `json:"parameters"`
	Device      string       `json:"device"`
	Config      train.Config `json:"config"`
	Done        int          `json:"epochs_done"`
}

type trainEpoch struct {
	Event         string  `json:"event"` // "epoch"
	Epoch         int     `json:"epoch"`
	TrainLoss     number  `json:"train_loss"`
	TrainAccuracy number  `json:"train_accuracy"`
	TestLoss      number  `json:"test_loss"`
	TestAccuracy  number  `json:"test_accuracy"`
	LR            number  `json:"lr"`
	Seconds       float64 `json:"seconds"`
	Compiles      int64   `json:"compiles"`    // since the start
	CachedHits    int64   `json:"cached_hits"` // since the start
	LiveTensors   int     `json:"live_tensors"`
	MemoryBytes   int64   `json:"memory_bytes"`
}

type trainSummary struct {
	Event        string       `json:"event"` // "done"
	Interrupted  bool         `json:"interrupted"`
	Epochs       int          `json:"epochs"`
	Seconds      float64      `json:"seconds"`
	TestAccuracy number       `json:"test_accuracy"`
	TestLoss     number       `json:"test_loss"`
	Right        int          `json:"right"`
	Images       int          `json:"images"`
	Compiles     int64        `json:"compiles"`
	CachedHits   int64        `json:"cached_hits"`
	DiskHits     int64        `json:"disk_hits"` // with --cache
	Weights      string       `json:"weights"`
	Checkpoint   string       `json:"checkpoint"`
	Plot         string       `json:"plot"`
	Package      string       `json:"package,omitempty"` // with --package
	Report       *trainReport `json:"report,omitempty"`  // with --report
}

type trainReport struct {
	Graphs       []graphReport      `json:"graphs"`
	StageSeconds map[string]float64 `json:"stage_seconds"`
	Steps        int64              `json:"steps"`
	Runs         int64              `json:"runs"`
	Nodes        int64              `json:"nodes"`
	LockWaits    uint64             `json:"lock_waits"`
	Uploaded     int64              `json:"bytes_uploaded"`
	Fetched      int64              `json:"bytes_fetched"`
}

type graphReport struct {
	Hash         string  `json:"hash"`
	Nodes        int     `json:"nodes"`
	EmittedNodes int     `json:"emitted_nodes"`
	Seconds      float64 `json:"seconds"`
	Why          string  `json:"why"`
}

// trainOutput prints the course of a training: objects a line with --json, else
// text, on a terminal with a progress bar below.
type trainOutput struct {
	f    *trainFlags
	t    *train.Trainer
	w    io.Writer
	json *json.Encoder // nil for text
	bar  *progress.Bar // nil for none
}

func newTrainOutput(c *cobra.Command, f *trainFlags, t *train.Trainer) *trainOutput {
	o := &trainOutput{f: f, t: t, w: c.OutOrStdout()}
	if f.json {
		o.json = json.NewEncoder(o.w)
		o.json.SetEscapeHTML(false)
		return o
	}
	if errOut := c.ErrOrStderr(); progress.OnTerminal(errOut) && progress.OnTerminal(o.w) {
		o.bar = progress.New(errOut, t.StepsPerEpoch()*f.Epochs)
	}
	return o
}

func (o *trainOutput) start() {
	trainImages, testImages := o.t.Images()
	if o.json != nil {
		o.encode(trainStart{
			Event: "start", TrainImages: trainImages, TestImages: testImages, Parameters: o.t.Parameters(),
			Device: o.f.Config.Device.String(), Config: o.f.Config, Done: o.t.Done(),
		})
		return
	}
	sizes := []string{"64"}
	for _, n := range o.f.Hidden {
		sizes = append(sizes, fmt.Sprint(n))
	}
	fmt.Fprintf(o.w, "perceptron %s-10 (%d parameters) on %v: %d training and %d test images, batches of %d\n",
		strings.Join(sizes, "-"), o.t.Parameters(), o.f.Config.Device, trainImages, testImages, o.f.Batch)
	if o.bar == nil {
		return
	}
	o.t.Progress = func(step, steps int) {
		o.bar.Set(fmt.Sprintf("epoch %d of %d", o.t.Done()+1, o.f.Epochs), int(o.t.Done())*steps+step%steps)
	}
}

// stop takes the bar away.
func (o *trainOutput) stop() {
	if o.bar != nil {
		o.bar.Clear()
	}
}

// encode prints one object. Standard output that is gone ends the program by its
// own signal, so the error says nothing new.
func (o *trainOutput) encode(v any) { _ = o.json.Encode(v) }

func (o *trainOutput) epoch(e train.Epoch, u train.Usage) {
	if o.json != nil {
		r := o.t.Report()
		o.encode(trainEpoch{
			Event: "epoch", Epoch: e.Number, TrainLoss: number(e.TrainLoss), TrainAccuracy: number(e.TrainAccuracy),
			TestLoss: number(e.Test.Loss), TestAccuracy: number(e.Test.Accuracy), LR: number(e.LR), Seconds: e.Time.Seconds(),
			Compiles: r.Compiles, CachedHits: r.CachedHits, LiveTensors: u.LiveTensors, MemoryBytes: u.Bytes,
		})
		return
	}
	o.stop()
	width := len(fmt.Sprint(o.f.Epochs))
	fmt.Fprintf(o.w, "epoch %*d/%d  training: loss %.4f, %6.2f %%  test: loss %.4f, %6.2f %%  %.2f s\n",
		width, e.Number, o.f.Epochs, e.TrainLoss, 100*e.TrainAccuracy, e.Test.Loss, 100*e.Test.Accuracy, e.Time.Seconds())
}

func (o *trainOutput) done(s trainSummary, r loris.Report, usage []train.Usage) error {
	if o.json != nil {
		if o.f.report {
			s.Report = reportJSON(r)
		}
		return o.json.Encode(s)
	}
	fmt.Fprintf(o.w, "test accuracy %.2f %% (%d of %d) after %d epochs, %.1f s\n", 100*float64(s.TestAccuracy), s.Right, s.Images, s.Epochs, s.Seconds)
	fmt.Fprintf(o.w, "%d graphs compiled, once each; %d times the cache had the graph\n", s.Compiles, s.CachedHits)
	if o.f.cache != "" {
		fmt.Fprintf(o.w, "%d graphs came from the cache on disk\n", s.DiskHits)
	}
	if text := usageText(usage); text != "" {
		fmt.Fprintf(o.w, "on %v %s\n", o.f.Config.Device, text)
	}
	if o.f.report {
		fmt.Fprintf(o.w, "\n%v\n", r)
	}
	if s.Package != "" {
		fmt.Fprintf(o.w, "wrote %s for PyTorch\n", s.Package)
	}
	_, err := fmt.Fprintf(o.w, "wrote %s, %s and %s\n", s.Weights, s.Checkpoint, s.Plot)
	return err
}

// usageText says what was held after each epoch but the first, which has yet to
// fill caches.
func usageText(usage []train.Usage) string {
	if len(usage) < 2 {
		return ""
	}
	lo, hi := usage[1], usage[1]
	for _, u := range usage[2:] {
		lo = train.Usage{LiveTensors: min(lo.LiveTensors, u.LiveTensors), Bytes: min(lo.Bytes, u.Bytes)}
		hi = train.Usage{LiveTensors: max(hi.LiveTensors, u.LiveTensors), Bytes: max(hi.Bytes, u.Bytes)}
	}
	if lo == hi {
		return fmt.Sprintf("after each epoch from the second on: %d live tensors, %d bytes", lo.LiveTensors, lo.Bytes)
	}
	return fmt.Sprintf("after each epoch from the second on: %d to %d live tensors, %d to %d bytes", lo.LiveTensors, hi.LiveTensors, lo.Bytes, hi.Bytes)
}

func reportJSON(r loris.Report) *trainReport {
	j := &trainReport{
		Graphs: []graphReport{}, StageSeconds: map[string]float64{}, Steps: r.Steps, Runs: r.Runs, Nodes: r.Nodes,
		LockWaits: r.LockWaits, Uploaded: r.BytesUploaded, Fetched: r.BytesFetched,
	}
	for _, c := range r.Recent {
		j.Graphs = append(j.Graphs, graphReport{c.Hash.String(), c.Nodes, c.EmittedNodes, c.Time.Seconds(), c.Why})
	}
	for stage, d := range r.StageTime {
		j.StageSeconds[stage] = d.Seconds()
	}
	return j
}
