package pb

// DecodeModel reads a ModelProto.
func DecodeModel(b []byte) (*Model, error) {
	m := &Model{}
	r := &reader{b: b, message: "ModelProto"}
	return m, r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.int(f, &m.IRVersion)
		case 2:
			return r.text(f, &m.Producer)
		case 3:
			return r.text(f, &m.ProducerText)
		case 4:
			return r.text(f, &m.Domain)
		case 7:
			return one(r, f, "GraphProto", &m.Graph, (*Graph).decode)
		case 8:
			return list(r, f, "OperatorSetIdProto", &m.Opsets, (*Opset).decode)
		case 14:
			return list(r, f, "StringStringEntryProto", &m.Metadata, (*Entry).decode)
		case 25:
			return each(r, f, "FunctionProto", &m.Functions, (*Function).decode)
		}
		return nil
	})
}

// DecodeTensor reads a TensorProto.
func DecodeTensor(b []byte) (*Tensor, error) {
	t := &Tensor{}
	return t, t.decode(&reader{b: b, message: "TensorProto"})
}

// DecodeSequence reads a SequenceProto.
func DecodeSequence(b []byte) (*Value, error) {
	v := &Value{}
	return v, v.decodeSequence(&reader{b: b, message: "SequenceProto"})
}

// DecodeOptional reads an OptionalProto.
func DecodeOptional(b []byte) (*Value, error) {
	v := &Value{}
	return v, v.decodeOptional(&reader{b: b, message: "OptionalProto"})
}

// one reads a message into a pointer.
func one[T any](r *reader, f field, name string, dst **T, decode func(*T, *reader) error) error {
	in, err := r.within(f, name)
	if err != nil {
		return err
	}
	if *dst == nil {
		*dst = new(T)
	}
	return decode(*dst, in)
}

// each appends a message to a list of pointers.
func each[T any](r *reader, f field, name string, dst *[]*T, decode func(*T, *reader) error) error {
	var v *T
	if err := one(r, f, name, &v, decode); err != nil {
		return err
	}
	*dst = append(*dst, v)
	return nil
}

// list appends a message to a list.
func list[T any](r *reader, f field, name string, dst *[]T, decode func(*T, *reader) error) error {
	var v *T
	if err := one(r, f, name, &v, decode); err != nil {
		return err
	}
	*dst = append(*dst, *v)
	return nil
}

func (o *Opset) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.text(f, &o.Domain)
		case 2:
			return r.int(f, &o.Version)
		}
		return nil
	})
}

func (e *Entry) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.text(f, &e.Key)
		case 2:
			return r.text(f, &e.Value)
		}
		return nil
	})
}

func (g *Graph) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return each(r, f, "NodeProto", &g.Nodes, (*Node).decode)
		case 2:
			return r.text(f, &g.Name)
		case 5:
			return each(r, f, "TensorProto", &g.Initializers, (*Tensor).decode)
		case 11:
			return each(r, f, "ValueInfoProto", &g.Inputs, (*ValueInfo).decode)
		case 12:
			return each(r, f, "ValueInfoProto", &g.Outputs, (*ValueInfo).decode)
		case 15:
			return each(r, f, "SparseTensorProto", &g.Sparse, (*Sparse).decode)
		}
		return nil
	})
}

func (fn *Function) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.text(f, &fn.Name)
		case 4:
			return r.texts(f, &fn.Inputs)
		case 5:
			return r.texts(f, &fn.Outputs)
		case 6:
			return r.texts(f, &fn.Attributes)
		case 7:
			return each(r, f, "NodeProto", &fn.Nodes, (*Node).decode)
		case 9:
			return list(r, f, "OperatorSetIdProto", &fn.Opsets, (*Opset).decode)
		case 10:
			return r.text(f, &fn.Domain)
		case 11:
			return each(r, f, "AttributeProto", &fn.Defaults, (*Attribute).decode)
		case 13:
			return r.text(f, &fn.Overload)
		}
		return nil
	})
}

func (n *Node) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.texts(f, &n.Inputs)
		case 2:
			return r.texts(f, &n.Outputs)
		case 3:
			return r.text(f, &n.Name)
		case 4:
			return r.text(f, &n.OpType)
		case 5:
			return each(r, f, "AttributeProto", &n.Attributes, (*Attribute).decode)
		case 7:
			return r.text(f, &n.Domain)
		case 8:
			return r.text(f, &n.Overload)
		}
		return nil
	})
}

func (a *Attribute) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.text(f, &a.Name)
		case 2:
			var v []float32
			if err := r.floats(f, &v); err != nil {
				return err
			}
			if len(v) > 0 {
				a.F = v[len(v)-1]
			}
			return a.kind(AttrFloat)
		case 3:
			return a.set(AttrInt, r.int(f, &a.I))
		case 4:
			return a.set(AttrString, r.text(f, &a.S))
		case 5:
			return a.set(AttrTensor, one(r, f, "TensorProto", &a.T, (*Tensor).decode))
		case 6:
			return a.set(AttrGraph, one(r, f, "GraphProto", &a.G, (*Graph).decode))
		case 7:
			return a.set(AttrFloats, r.floats(f, &a.Floats))
		case 8:
			return a.set(AttrInts, r.ints(f, &a.Ints))
		case 9:
			return a.set(AttrStrings, r.texts(f, &a.Strings))
		case 10:
			return a.set(AttrTensors, each(r, f, "TensorProto", &a.Tensors, (*Tensor).decode))
		case 11:
			return a.set(AttrGraphs, each(r, f, "GraphProto", &a.Graphs, (*Graph).decode))
		case 14:
			return one(r, f, "TypeProto", &a.TP, (*Type).decode)
		case 20:
			return r.int(f, &a.Type)
		case 21:
			return r.text(f, &a.RefName)
		case 22:
			return one(r, f, "SparseTensorProto", &a.Sparse, (*Sparse).decode)
		}
		return nil
	})
}

// kind sets the type of an attribute that has none: files before IR version 2 leave it out.
func (a *Attribute) kind(t int64) error {
	if a.Type == 0 {
		a.Type = t
	}
	return nil
}

func (a *Attribute) set(t int64, err error) error {
	if err != nil {
		return err
	}
	return a.kind(t)
}

func (t *Tensor) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.ints(f, &t.Dims)
		case 2:
			return r.int(f, &t.DType)
		case 3:
			return r.fail(f.offset-r.base, "the tensor is stored in segments, which no version of ONNX defines")
		case 4:
			return r.floats(f, &t.Floats)
		case 5:
			return r.ints(f, &t.Int32s)
		case 6:
			return r.texts(f, &t.Strings)
		case 7:
			return r.ints(f, &t.Int64s)
		case 8:
			return r.text(f, &t.Name)
		case 9:
			t.HasRaw = true
			return r.raw(f, &t.Raw)
		case 10:
			return r.doubles(f, &t.Doubles)
		case 11:
			return r.ints(f, &t.Uint64s)
		case 13:
			return list(r, f, "StringStringEntryProto", &t.External, (*Entry).decode)
		case 14:
			return r.int(f, &t.Location)
		}
		return nil
	})
}

func (s *Sparse) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return one(r, f, "TensorProto", &s.Values, (*Tensor).decode)
		case 2:
			return one(r, f, "TensorProto", &s.Indices, (*Tensor).decode)
		case 3:
			return r.ints(f, &s.Dims)
		}
		return nil
	})
}

func (v *ValueInfo) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.text(f, &v.Name)
		case 2:
			return one(r, f, "TypeProto", &v.Type, (*Type).decode)
		}
		return nil
	})
}

func (t *Type) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			t.Kind = KindTensor
			return t.within(r, f, "TypeProto.Tensor", t.decodeTensor)
		case 4:
			t.Kind = KindSequence
			return t.within(r, f, "TypeProto.Sequence", t.decodeElem)
		case 5:
			t.Kind = KindMap
		case 7:
			t.Kind = KindOpaque
		case 8:
			t.Kind = KindSparse
		case 9:
			t.Kind = KindOptional
			return t.within(r, f, "TypeProto.Optional", t.decodeElem)
		}
		return nil
	})
}

func (t *Type) within(r *reader, f field, name string, decode func(*reader) error) error {
	in, err := r.within(f, name)
	if err != nil {
		return err
	}
	return decode(in)
}

func (t *Type) decodeElem(r *reader) error {
	return r.each(func(f field) error {
		if f.number != 1 {
			return nil
		}
		return one(r, f, "TypeProto", &t.Elem, (*Type).decode)
	})
}

func (t *Type) decodeTensor(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			return r.int(f, &t.DType)
		case 2:
			t.HasShape = true
			return t.within(r, f, "TensorShapeProto", t.decodeShape)
		}
		return nil
	})
}

func (t *Type) decodeShape(r *reader) error {
	return r.each(func(f field) error {
		if f.number != 1 {
			return nil
		}
		return list(r, f, "TensorShapeProto.Dimension", &t.Shape, (*Dim).decode)
	})
}

func (d *Dim) decode(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 1:
			d.HasSize = true
			return r.int(f, &d.Size)
		case 2:
			return r.text(f, &d.Symbol)
		}
		return nil
	})
}

func (v *Value) decodeSequence(r *reader) error {
	v.IsSeq = true
	return r.each(func(f field) error {
		e := &Value{}
		switch f.number {
		case 3:
			v.Values = append(v.Values, e)
			return one(r, f, "TensorProto", &e.Tensor, (*Tensor).decode)
		case 5:
			return each(r, f, "SequenceProto", &v.Values, (*Value).decodeSequence)
		case 7:
			return each(r, f, "OptionalProto", &v.Values, (*Value).decodeOptional)
		}
		return nil
	})
}

func (v *Value) decodeOptional(r *reader) error {
	return r.each(func(f field) error {
		switch f.number {
		case 3:
			return one(r, f, "TensorProto", &v.Tensor, (*Tensor).decode)
		case 5:
			in, err := r.within(f, "SequenceProto")
			if err != nil {
				return err
			}
			return v.decodeSequence(in)
		}
		return nil
	})
}
