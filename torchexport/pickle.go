package torchexport

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loris-ml/loris/internal/ir"
)

// A pickle is a program. unpickle runs the part of the language that files of torch.save with
// tensors need, and in which nothing can be called but what makes tensors and dictionaries: it looks
// at the names of functions and calls none of Python's.

// pickled is a tensor as a pickle describes it: a view of a storage that lies beside the pickle.
type pickled struct {
	storage        string // its key
	dtype          ir.DType
	sizes, strides []int64
	offset         int64
}

// global is a function or class by its name.
type global string

type mark struct{}

const (
	maxPickle      = 64 << 20 // bytes
	maxPickleStack = 1 << 20
)

// storageTypes are the classes of storages.
var storageTypes = map[global]ir.DType{
	"torch.FloatStorage": ir.F32, "torch.DoubleStorage": ir.F64, "torch.HalfStorage": ir.F16, "torch.BFloat16Storage": ir.BF16,
	"torch.LongStorage": ir.I64, "torch.IntStorage": ir.I32, "torch.ShortStorage": ir.I16, "torch.CharStorage": ir.I8,
	"torch.ByteStorage": ir.U8, "torch.BoolStorage": ir.Bool, "torch.ComplexFloatStorage": ir.C64, "torch.ComplexDoubleStorage": ir.C128,
	"torch.storage.UntypedStorage": ir.U8,
}

// unpickle reads a pickle of a dictionary by strings and returns it.
func unpickle(b []byte) (map[string]any, error) {
	if len(b) > maxPickle {
		return nil, fmt.Errorf("a pickle of %d bytes", len(b))
	}
	u := &unpickler{b: b, memo: map[uint32]any{}}
	v, err := u.run()
	if err != nil {
		return nil, fmt.Errorf("pickle at byte %d: %w", u.pos, err)
	}
	d, ok := v.(*dict)
	if !ok {
		return nil, fmt.Errorf("the pickle holds %s, not a dictionary", describe(v))
	}
	return d.m, nil
}

type dict struct{ m map[string]any }

type list struct{ items []any }

type unpickler struct {
	b     []byte
	pos   int
	stack []any
	memo  map[uint32]any
}

func (u *unpickler) take(n int) ([]byte, error) {
	if n < 0 || n > len(u.b)-u.pos {
		return nil, fmt.Errorf("it is cut short")
	}
	u.pos += n
	return u.b[u.pos-n : u.pos], nil
}

func (u *unpickler) uint(n int) (uint64, error) {
	b, err := u.take(n)
	if err != nil {
		return 0, err
	}
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:]), nil
}

func (u *unpickler) line() (string, error) {
	for i := u.pos; i < len(u.b); i++ {
		if u.b[i] == '\n' {
			s := string(u.b[u.pos:i])
			u.pos = i + 1
			return s, nil
		}
	}
	return "", fmt.Errorf("it is cut short")
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() (any, error) {
	if len(u.stack) == 0 {
		return nil, fmt.Errorf("its stack is empty")
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

// popMark takes everything above the last mark, and the mark.
func (u *unpickler) popMark() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, ok := u.stack[i].(mark); ok {
			items := append([]any(nil), u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, fmt.Errorf("a mark is missing")
}

func (u *unpickler) popN(n int) ([]any, error) {
	if n > len(u.stack) {
		return nil, fmt.Errorf("its stack is empty")
	}
	items := append([]any(nil), u.stack[len(u.stack)-n:]...)
	u.stack = u.stack[:len(u.stack)-n]
	return items, nil
}

func (u *unpickler) run() (any, error) {
	for {
		op, err := u.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' {
			return u.pop()
		}
		if len(u.stack) > maxPickleStack {
			return nil, fmt.Errorf("its stack grows too large")
		}
		if err := u.step(op[0]); err != nil {
			return nil, err
		}
	}
}

func (u *unpickler) step(op byte) error {
	if done, err := u.literal(op); done || err != nil {
		return err
	}
	switch op {
	case '(':
		u.push(mark{})
	case '}':
		u.push(&dict{map[string]any{}})
	case ']':
		u.push(&list{})
	case ')':
		u.push([]any{})
	case 't':
		items, err := u.popMark()
		u.push(items)
		return err
	case 0x85, 0x86, 0x87:
		items, err := u.popN(int(op - 0x84))
		u.push(items)
		return err
	case '0':
		_, err := u.pop()
		return err
	case 'q', 'r':
		return u.put(op)
	case 0x94: // MEMOIZE
		if len(u.stack) == 0 {
			return fmt.Errorf("its stack is empty")
		}
		u.memo[uint32(len(u.memo))] = u.stack[len(u.stack)-1]
	case 'h', 'j':
		return u.get(op)
	case 'c':
		module, err := u.line()
		if err != nil {
			return err
		}
		name, err := u.line()
		u.push(global(module + "." + name))
		return err
	case 0x93: // STACK_GLOBAL
		items, err := u.popN(2)
		if err != nil {
			return err
		}
		module, ok1 := items[0].(string)
		name, ok2 := items[1].(string)
		if !ok1 || !ok2 {
			return fmt.Errorf("a name is not a string")
		}
		u.push(global(module + "." + name))
	default:
		return u.compound(op)
	}
	return nil
}

// literal pushes a number, a string, a truth value or nothing.
func (u *unpickler) literal(op byte) (bool, error) {
	sized := func(n int) error {
		size, err := u.uint(n)
		if err != nil {
			return err
		}
		b, err := u.take(int(min(size, math.MaxInt32)))
		u.push(string(b))
		return err
	}
	switch op {
	case 0x80: // PROTO
		v, err := u.take(1)
		if err == nil && (v[0] < 2 || v[0] > 5) {
			err = fmt.Errorf("protocol %d is not supported", v[0])
		}
		return true, err
	case 0x95: // FRAME
		_, err := u.take(8)
		return true, err
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(op == 0x88)
	case 'K', 'M', 'J':
		n, err := u.uint(map[byte]int{'K': 1, 'M': 2, 'J': 4}[op])
		if op == 'J' {
			u.push(int64(int32(n)))
		} else {
			u.push(int64(n))
		}
		return true, err
	case 0x8a: // LONG1
		n, err := u.take(1)
		if err != nil {
			return true, err
		}
		b, err := u.take(int(n[0]))
		if err == nil && len(b) > 8 {
			err = fmt.Errorf("an integer of %d bytes", len(b))
		}
		if err != nil {
			return true, err
		}
		var w [8]byte
		copy(w[:], b)
		if len(b) > 0 && b[len(b)-1]&0x80 != 0 {
			for i := len(b); i < 8; i++ {
				w[i] = 0xff
			}
		}
		u.push(int64(binary.LittleEndian.Uint64(w[:])))
	case 'G':
		b, err := u.take(8)
		if err == nil {
			u.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
		return true, err
	case 'X':
		return true, sized(4)
	case 0x8c:
		return true, sized(1)
	default:
		return false, nil
	}
	return true, nil
}

func (u *unpickler) index(op byte) (uint32, error) {
	n := 1
	if op == 'r' || op == 'j' {
		n = 4
	}
	i, err := u.uint(n)
	return uint32(i), err
}

func (u *unpickler) put(op byte) error {
	i, err := u.index(op)
	if err == nil && len(u.stack) == 0 {
		err = fmt.Errorf("its stack is empty")
	}
	if err == nil {
		u.memo[i] = u.stack[len(u.stack)-1]
	}
	return err
}

func (u *unpickler) get(op byte) error {
	i, err := u.index(op)
	if err != nil {
		return err
	}
	v, ok := u.memo[i]
	if !ok {
		return fmt.Errorf("nothing is remembered as %d", i)
	}
	u.push(v)
	return nil
}

// compound changes containers, and makes tensors and storages.
func (u *unpickler) compound(op byte) error {
	switch op {
	case 's', 'u':
		return u.setItems(op)
	case 'a', 'e':
		return u.appendItems(op)
	case 'b': // BUILD: attributes of a dictionary, such as _metadata, mean nothing here
		_, err := u.pop()
		return err
	case 'Q':
		id, err := u.pop()
		if err != nil {
			return err
		}
		v, err := storageOf(id)
		u.push(v)
		return err
	case 'R', 0x81: // REDUCE, NEWOBJ
		items, err := u.popN(2)
		if err != nil {
			return err
		}
		v, err := reduce(items[0], items[1])
		u.push(v)
		return err
	}
	return fmt.Errorf("the instruction %#02x is not allowed", op)
}

func (u *unpickler) setItems(op byte) error {
	var items []any
	var err error
	if op == 'u' {
		items, err = u.popMark()
	} else {
		items, err = u.popN(2)
	}
	if err != nil {
		return err
	}
	if len(u.stack) == 0 || len(items)%2 != 0 {
		return fmt.Errorf("a dictionary's items are damaged")
	}
	d, ok := u.stack[len(u.stack)-1].(*dict)
	if !ok {
		return fmt.Errorf("items are set of %s", describe(u.stack[len(u.stack)-1]))
	}
	for i := 0; i < len(items); i += 2 {
		if k, ok := items[i].(string); ok {
			d.m[k] = items[i+1]
		}
	}
	return nil
}

func (u *unpickler) appendItems(op byte) error {
	var items []any
	var err error
	if op == 'e' {
		items, err = u.popMark()
	} else {
		items, err = u.popN(1)
	}
	if err != nil {
		return err
	}
	if len(u.stack) == 0 {
		return fmt.Errorf("its stack is empty")
	}
	l, ok := u.stack[len(u.stack)-1].(*list)
	if !ok {
		return fmt.Errorf("items are appended to %s", describe(u.stack[len(u.stack)-1]))
	}
	l.items = append(l.items, items...)
	return nil
}

// storage is what a persistent id stands for.
type storage struct {
	key   string
	dtype ir.DType
}

// storageOf reads the id ("storage", class, key, location, size).
func storageOf(id any) (any, error) {
	t, ok := id.([]any)
	if !ok || len(t) < 3 || t[0] != "storage" {
		return nil, fmt.Errorf("an id that is not a storage's")
	}
	class, ok1 := t[1].(global)
	key, ok2 := t[2].(string)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("an id that is not a storage's")
	}
	d, ok := storageTypes[class]
	if !ok {
		return nil, fmt.Errorf("storages of the class %q are not supported", string(class))
	}
	return storage{key, d}, nil
}

// reduce does what calling f with the arguments would.
func reduce(f, args any) (any, error) {
	name, ok := f.(global)
	a, ok2 := args.([]any)
	if !ok || !ok2 {
		return nil, fmt.Errorf("something is called that is no function")
	}
	switch name {
	case "collections.OrderedDict":
		return &dict{map[string]any{}}, nil
	case "torch._utils._rebuild_tensor_v2":
		return rebuildTensor(a, nil)
	case "torch._utils._rebuild_tensor_v3":
		if len(a) < 7 {
			return nil, fmt.Errorf("a tensor of %d arguments", len(a))
		}
		return rebuildTensor(a, a[6])
	case "torch._utils._rebuild_parameter", "torch._utils._rebuild_parameter_with_state":
		if len(a) > 0 {
			if t, ok := a[0].(*pickled); ok {
				return t, nil
			}
		}
		return nil, fmt.Errorf("a parameter that holds no tensor")
	}
	return nil, fmt.Errorf("%q is not allowed: only tensors are read", string(name))
}

// torchDTypes are dtypes by the names that pickles have.
var torchDTypes = map[global]ir.DType{
	"torch.float32": ir.F32, "torch.float64": ir.F64, "torch.float16": ir.F16, "torch.bfloat16": ir.BF16, "torch.int64": ir.I64,
	"torch.int32": ir.I32, "torch.int16": ir.I16, "torch.int8": ir.I8, "torch.uint8": ir.U8, "torch.bool": ir.Bool,
	"torch.float8_e4m3fn": ir.F8E4M3FN, "torch.float8_e5m2": ir.F8E5M2, "torch.complex64": ir.C64, "torch.complex128": ir.C128,
}

// rebuildTensor makes a tensor of (storage, offset, sizes, strides, …).
func rebuildTensor(a []any, dtype any) (any, error) {
	if len(a) < 4 {
		return nil, fmt.Errorf("a tensor of %d arguments", len(a))
	}
	s, ok := a[0].(storage)
	offset, ok2 := a[1].(int64)
	sizes, ok3 := ints(a[2])
	strides, ok4 := ints(a[3])
	if !ok || !ok2 || !ok3 || !ok4 {
		return nil, fmt.Errorf("a tensor's arguments are damaged")
	}
	t := &pickled{storage: s.key, dtype: s.dtype, sizes: sizes, strides: strides, offset: offset}
	if name, ok := dtype.(global); ok {
		if t.dtype, ok = torchDTypes[name]; !ok {
			return nil, fmt.Errorf("the dtype %q is not supported", string(name))
		}
	}
	return t, nil
}

func ints(v any) ([]int64, bool) {
	items, ok := v.([]any)
	out := make([]int64, len(items))
	for i, x := range items {
		n, isInt := x.(int64)
		ok = ok && isInt
		out[i] = n
	}
	return out, ok
}

// describe says what a value of a pickle is.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case *dict:
		return "a dictionary"
	case *list, []any:
		return "a list"
	case *pickled:
		return "a tensor"
	case global:
		return fmt.Sprintf("%q", string(v))
	}
	return fmt.Sprintf("a %T", v)
}
