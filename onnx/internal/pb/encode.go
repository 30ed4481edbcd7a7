package pb

import (
	"encoding/binary"
	"math"
)

// writer appends fields to a message.
type writer struct{ b []byte }

func (w *writer) tag(number, wire int) {
	w.b = binary.AppendUvarint(w.b, uint64(number)<<3|uint64(wire))
}

// int writes a number, and nothing for 0, which is the default.
func (w *writer) int(number int, v int64) {
	if v != 0 {
		w.always(number, v)
	}
}

func (w *writer) always(number int, v int64) {
	w.tag(number, wireVarint)
	w.b = binary.AppendUvarint(w.b, uint64(v))
}

func (w *writer) bytes(number int, v []byte) {
	w.tag(number, wireBytes)
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) text(number int, v string) {
	if v != "" {
		w.bytes(number, []byte(v))
	}
}

func (w *writer) texts(number int, vs []string) {
	for _, v := range vs {
		w.bytes(number, []byte(v)) // "" too: an input that is left out
	}
}

// ints writes a packed list.
func (w *writer) ints(number int, vs []int64) {
	if len(vs) == 0 {
		return
	}
	var in []byte
	for _, v := range vs {
		in = binary.AppendUvarint(in, uint64(v))
	}
	w.bytes(number, in)
}

func (w *writer) float(number int, v float32) {
	w.tag(number, wire32)
	w.b = binary.LittleEndian.AppendUint32(w.b, math.Float32bits(v))
}

// message writes what fill puts into a message of its own.
func (w *writer) message(number int, fill func(w *writer)) {
	in := &writer{}
	fill(in)
	w.bytes(number, in.b)
}

// messages writes a list of messages.
func messages[T any](w *writer, number int, list []T, fill func(v T, w *writer)) {
	for _, v := range list {
		w.message(number, func(w *writer) { fill(v, w) })
	}
}

// EncodeModel writes a ModelProto with the fields that DecodeModel reads, training apart.
func EncodeModel(m *Model) []byte {
	w := &writer{}
	w.int(1, m.IRVersion)
	w.text(2, m.Producer)
	w.text(3, m.ProducerText)
	w.text(4, m.Domain)
	if m.Graph != nil {
		w.message(7, m.Graph.encode)
	}
	messages(w, 8, m.Opsets, Opset.encode)
	messages(w, 14, m.Metadata, Entry.encode)
	messages(w, 25, m.Functions, (*Function).encode)
	return w.b
}

func (o Opset) encode(w *writer) {
	w.text(1, o.Domain)
	w.int(2, o.Version)
}

func (e Entry) encode(w *writer) {
	w.text(1, e.Key)
	w.text(2, e.Value)
}

func (g *Graph) encode(w *writer) {
	messages(w, 1, g.Nodes, (*Node).encode)
	w.text(2, g.Name)
	messages(w, 5, g.Initializers, (*Tensor).encode)
	messages(w, 11, g.Inputs, (*ValueInfo).encode)
	messages(w, 12, g.Outputs, (*ValueInfo).encode)
}

func (fn *Function) encode(w *writer) {
	w.text(1, fn.Name)
	w.texts(4, fn.Inputs)
	w.texts(5, fn.Outputs)
	w.texts(6, fn.Attributes)
	messages(w, 7, fn.Nodes, (*Node).encode)
	messages(w, 9, fn.Opsets, Opset.encode)
	w.text(10, fn.Domain)
	messages(w, 11, fn.Defaults, (*Attribute).encode)
	w.text(13, fn.Overload)
}

func (n *Node) encode(w *writer) {
	w.texts(1, n.Inputs)
	w.texts(2, n.Outputs)
	w.text(3, n.Name)
	w.text(4, n.OpType)
	messages(w, 5, n.Attributes, (*Attribute).encode)
	w.text(7, n.Domain)
	w.text(8, n.Overload)
}

func (a *Attribute) encode(w *writer) {
	w.text(1, a.Name)
	switch a.Type {
	case AttrFloat:
		w.float(2, a.F)
	case AttrInt:
		w.always(3, a.I)
	case AttrString:
		w.bytes(4, []byte(a.S))
	case AttrTensor:
		w.message(5, a.T.encode)
	case AttrGraph:
		w.message(6, a.G.encode)
	case AttrFloats:
		for _, v := range a.Floats {
			w.float(7, v)
		}
	case AttrInts:
		for _, v := range a.Ints {
			w.always(8, v)
		}
	case AttrStrings:
		w.texts(9, a.Strings)
	}
	w.int(20, a.Type)
	w.text(21, a.RefName)
}

func (t *Tensor) encode(w *writer) {
	w.ints(1, t.Dims)
	w.int(2, t.DType)
	w.text(8, t.Name)
	if t.HasRaw {
		w.bytes(9, t.Raw)
	}
	messages(w, 13, t.External, Entry.encode)
	w.int(14, t.Location)
}

func (v *ValueInfo) encode(w *writer) {
	w.text(1, v.Name)
	if v.Type != nil {
		w.message(2, v.Type.encode)
	}
}

func (t *Type) encode(w *writer) {
	switch t.Kind {
	case KindTensor:
		w.message(1, func(w *writer) {
			w.int(1, t.DType)
			if t.HasShape {
				w.message(2, func(w *writer) { messages(w, 1, t.Shape, Dim.encode) })
			}
		})
	case KindSequence:
		w.message(4, func(w *writer) { w.message(1, t.Elem.encode) })
	case KindOptional:
		w.message(9, func(w *writer) { w.message(1, t.Elem.encode) })
	}
}

func (d Dim) encode(w *writer) {
	if d.HasSize {
		w.always(1, d.Size)
	}
	w.text(2, d.Symbol)
}

// EncodeTensor writes a TensorProto.
func EncodeTensor(t *Tensor) []byte {
	w := &writer{}
	t.encode(w)
	return w.b
}
