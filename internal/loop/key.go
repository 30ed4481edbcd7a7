package loop

import "encoding/binary"

// Key returns the structure of a kernel as a string: equal ones are equal.
func (k *Kernel) Key() string {
	b := make([]byte, 0, 64+16*len(k.Instrs))
	b = append(b, byte(k.Axis)|flag(k.Planes)<<7, byte(len(k.Args)))
	for _, a := range k.Args {
		b = append(b, byte(a.DType), byte(a.Cols), flag(a.Write)|flag(a.Stream)<<1|flag(a.Ahead)<<2|flag(a.Moves)<<3|flag(a.Scratch)<<4, byte(a.By))
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(k.Width)), uint64(k.Height))
	if k.Width > 0 || k.Height > 0 {
		for _, a := range k.Args {
			b = binary.AppendVarint(binary.AppendVarint(b, int64(a.RowStep)), int64(a.ColStep))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(k.Instrs)))
	for i := range k.Instrs {
		in := &k.Instrs[i]
		b = append(b, byte(in.Code), byte(in.DType), in.N)
		b = binary.AppendUvarint(b, uint64(in.Op))
		for _, v := range in.In[:in.N] {
			b = binary.AppendUvarint(b, uint64(v))
		}
		b = binary.AppendUvarint(b, uint64(in.Arg))
		b = binary.AppendUvarint(b, in.Bits)
	}
	for _, p := range k.Passes {
		for _, list := range [2][]Value{p.Body, p.Final} {
			b = binary.AppendUvarint(b, uint64(len(list)))
			for _, v := range list {
				b = binary.AppendUvarint(b, uint64(v))
			}
		}
	}
	return string(b)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
