package repository

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// readLabels reads the files of label_filename, one label a line, by output.
func readLabels(c *pb.ModelConfig, m *model.Model, dir string) ([][]string, error) {
	labels := make([][]string, len(m.Outputs))
	for _, o := range c.Output {
		if o.LabelFilename == "" {
			continue
		}
		if !filepath.IsLocal(o.LabelFilename) {
			return nil, badf("output %q: label_filename %q leaves the folder", o.Name, o.LabelFilename)
		}
		at, err := m.FindOutput(o.Name)
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(filepath.Join(dir, o.LabelFilename))
		if err != nil {
			return nil, fmt.Errorf("output %q: label_filename: %w", o.Name, err)
		}
		labels[at] = strings.Split(strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n")
	}
	return labels, nil
}

// classCount reads the parameter classification of a requested output; 0 asks for the tensor.
func classCount(o *inference.RequestedOutput) (int, error) {
	value, ok := o.Parameters["classification"]
	if !ok {
		return 0, nil
	}
	n, ok := value.(int64)
	if u, is := value.(uint64); is {
		n, ok = int64(min(u, math.MaxInt32)), true
	}
	if !ok || n < 0 {
		return 0, badf("output %q, parameter classification: expected a number of classes, got %v", o.Name, value)
	}
	return int(min(n, math.MaxInt32)), nil
}

// classify returns the greatest n elements of an output, of each row where batched, as texts
// "VALUE:INDEX" or "VALUE:INDEX:LABEL".
func classify(t *inference.Tensor, n int, batched bool, labels []string) (inference.Tensor, error) {
	d, format := t.Datatype.DType(), "%f:%d"
	if d == ir.Bool {
		return *t, badf("output %q: %s has no classes", t.Name, t.Datatype)
	}
	if d.IsIntegral() {
		format = "%.0f:%d"
	}
	rows, each := 1, len(t.Data)/d.Size()
	out := inference.Tensor{Name: t.Name, Datatype: inference.Bytes, Shape: []int64{}}
	if batched && len(t.Shape) > 0 {
		rows = int(t.Shape[0])
		each /= max(rows, 1)
		out.Shape = append(out.Shape, int64(rows))
	}
	n = min(n, each)
	out.Shape = append(out.Shape, int64(n))
	values, order := make([]float64, each), make([]int, each)
	for row := range rows {
		for i := range order {
			values[i], order[i] = valueOf(d, t.Data, row*each+i), i
		}
		// Of equal ones the first comes first; what is no number comes last.
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		for _, i := range order[:n] {
			text := fmt.Sprintf(format, values[i], i)
			if i < len(labels) {
				text += ":" + labels[i]
			}
			out.Data = binary.LittleEndian.AppendUint32(out.Data, uint32(len(text)))
			out.Data = append(out.Data, text...)
		}
	}
	return out, nil
}

// valueOf returns element i as a float64, in which integers beyond 2⁵³ lose digits.
func valueOf(d ir.DType, data []byte, i int) float64 {
	if d.IsIntegral() {
		return float64(elements.Int(d, data, i))
	}
	return elements.Float(d, data, i)
}
