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

	"github.com/loris-ml/loris/internal/half"
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
	size := t.Datatype.Size()
	if size == 0 || t.Datatype == inference.Bool {
		return *t, badf("output %q: %s has no classes", t.Name, t.Datatype)
	}
	rows, each := 1, len(t.Data)/size
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
			values[i], order[i] = valueOf(t.Datatype, t.Data[(row*each+i)*size:][:size]), i
		}
		// Of equal ones the first comes first; what is no number comes last.
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		for _, i := range order[:n] {
			text := fmt.Sprintf("%f:%d", values[i], i)
			switch t.Datatype {
			case inference.FP16, inference.BF16, inference.FP32, inference.FP64:
			default:
				text = fmt.Sprintf("%.0f:%d", values[i], i)
			}
			if i < len(labels) {
				text += ":" + labels[i]
			}
			out.Data = binary.LittleEndian.AppendUint32(out.Data, uint32(len(text)))
			out.Data = append(out.Data, text...)
		}
	}
	return out, nil
}

// valueOf returns an element as a float64, in which integers beyond 2⁵³ lose digits.
func valueOf(d inference.Datatype, e []byte) float64 {
	var bits uint64
	for i := len(e) - 1; i >= 0; i-- {
		bits = bits<<8 | uint64(e[i])
	}
	switch d {
	case inference.FP64:
		return math.Float64frombits(bits)
	case inference.FP32:
		return float64(math.Float32frombits(uint32(bits)))
	case inference.FP16:
		return float64(half.F16ToF32(uint16(bits)))
	case inference.BF16:
		return float64(math.Float32frombits(uint32(bits) << 16))
	case inference.Int8, inference.Int16, inference.Int32, inference.Int64:
		shift := 64 - 8*len(e)
		return float64(int64(bits<<shift) >> shift)
	}
	return float64(bits)
}
