package executor

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/loris-ml/loris/backend"
	"github.com/loris-ml/loris/internal/cache"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/internal/ir"
)

type scalarParam struct {
	index int
	leaf  *ir.ScalarLeaf
	dtype ir.DType
}

// resolveScalars sets the job's parameters that are plain numbers to device data, from the data
// cache where it has them.
func (s *Session) resolveScalars(ctx context.Context, j *syncJob) error {
	for _, sp := range j.scalars {
		d, err := s.core.scalarData(ctx, sp.leaf, sp.dtype, j.coll.Device)
		if err != nil {
			return err
		}
		j.params[sp.index] = d
	}
	return nil
}

// scalarData returns the device's copy of a number, which the data cache keeps.
func (c *core) scalarData(ctx context.Context, l *ir.ScalarLeaf, dt ir.DType, d ir.Device) (*Data, error) {
	bits := scalarBits(l, dt)
	key := cache.Scalar{DType: byte(dt), Bits: bits}
	if ref, ok := c.data.GetScalar(d, key); ok {
		v := ref.Value()
		ref.Release()
		return v, nil
	}
	be, err := backend.For(d)
	if err != nil {
		return nil, err
	}
	upload := be.Upload
	if nb, ok := be.(backend.NumberBackend); ok {
		upload = nb.UploadNumber
	}
	b := make([]byte, 8)
	binary.LittleEndian.PutUint64(b, bits)
	b = b[:min(len(b), dt.Size())]
	buf, err := upload(ctx, ir.MakeShape(dt), d, b)
	if err != nil {
		return nil, fmt.Errorf("upload a scalar to %v: %w", d, err)
	}
	c.stats.uploaded.Add(int64(len(b)))
	data := readyData(buf, DeviceDataInfo{TensorID: c.nextID.Add(1), ReadOnly: true})
	ref := c.data.PutScalar(d, key, data)
	ref.Release()
	return data, nil
}

// scalarBits returns the bits of the element of a dtype that is not complex to which the number
// converts. Floats but for f64 are rounded to f32 first, as in ATen.
func scalarBits(l *ir.ScalarLeaf, dt ir.DType) uint64 {
	var word [8]byte
	b := word[:0] // what is appended to it lies in word
	switch f := l.AsFloat(); {
	case dt == ir.F64:
		elements.AppendFloat(b, dt, f)
	case dt.IsFloatOrF8():
		elements.AppendFloat(b, dt, float64(float32(f)))
	case l.IsFloat:
		elements.AppendInt(b, dt, ir.FloatToInt(dt, f))
	default:
		elements.AppendInt(b, dt, l.Int)
	}
	return binary.LittleEndian.Uint64(word[:])
}
