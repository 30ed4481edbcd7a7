// Package tensorboard writes event files, which TensorBoard shows: numbers, histograms and images
// over the steps of a training.
//
//	w, err := tensorboard.Create("runs/first")
//	defer w.Close()
//	err = w.Scalar("loss", step, loss)
//	err = w.Histogram("weights", step, values)
package tensorboard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Writer writes one event file. Its methods are safe for concurrent use; each writes its event to
// the file before it returns, and its error is that of the file.
type Writer struct {
	mu   sync.Mutex
	file *os.File // guarded by mu
	now  func() time.Time
}

// Create makes the folder if need be and a new event file in it.
func Create(dir string) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	now := time.Now()
	name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d", now.Unix(), host, os.Getpid(), now.Nanosecond())
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	w := &Writer{file: f, now: time.Now}
	if err := w.event(0, bytesField(nil, 3, []byte("brain.Event:2"))); err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

// Path returns the file's path.
func (w *Writer) Path() string { return w.file.Name() }

// Close closes the file.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

// Scalar writes a number of a step.
func (w *Writer) Scalar(tag string, step int64, value float64) error {
	return w.summary(tag, step, fixed32(nil, 2, math.Float32bits(float32(value))))
}

// Image writes an image of a step.
func (w *Writer) Image(tag string, step int64, img image.Image) error {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return fmt.Errorf("tensorboard: image %q: %w", tag, err)
	}
	size := img.Bounds().Size()
	m := varintField(nil, 1, uint64(size.Y))
	m = varintField(m, 2, uint64(size.X))
	m = varintField(m, 3, 4) // RGBA
	m = bytesField(m, 4, b.Bytes())
	return w.summary(tag, step, bytesField(nil, 4, m))
}

// Histogram writes how the values of a step are distributed. Those that are not finite are left out;
// without any other nothing is written.
func (w *Writer) Histogram(tag string, step int64, values []float32) error {
	h := NewHistogram(values)
	if h.Count == 0 {
		return nil
	}
	m := double(nil, 1, h.Min)
	m = double(m, 2, h.Max)
	m = double(m, 3, float64(h.Count))
	m = double(m, 4, h.Sum)
	m = double(m, 5, h.SumSquares)
	m = bytesField(m, 6, doubles(h.Limits))
	counts := make([]float64, len(h.Counts))
	for i, n := range h.Counts {
		counts[i] = float64(n)
	}
	m = bytesField(m, 7, doubles(counts))
	return w.summary(tag, step, bytesField(nil, 5, m))
}

// summary writes an event with one value, whose other fields are given.
func (w *Writer) summary(tag string, step int64, fields []byte) error {
	value := append(bytesField(nil, 1, []byte(tag)), fields...)
	return w.event(step, bytesField(nil, 5, bytesField(nil, 1, value)))
}

// event writes an event: the time, the step and the field given.
func (w *Writer) event(step int64, what []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := double(nil, 1, float64(w.now().UnixNano())/1e9)
	m = varintField(m, 2, uint64(step))
	m = append(m, what...)
	if _, err := w.file.Write(record(m)); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record frames an event: length, checksum of the length, event, checksum of the event.
func record(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, checksum(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, checksum(data))
}

// checksum is the CRC-32C, turned and moved so that records within records differ from theirs.
func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// The fields of protocol buffers.

func varintField(b []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), v)
}

func double(b []byte, field int, v float64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(field)<<3|1), math.Float64bits(v))
}

func bytesField(b []byte, field int, v []byte) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

func fixed32(b []byte, field int, v uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, uint64(field)<<3|5), v)
}

func doubles(v []float64) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
