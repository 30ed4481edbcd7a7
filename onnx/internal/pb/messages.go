package pb

// The messages of onnx.proto that the package reads, with the names that they have there.
type (
	// Model is ModelProto.
	Model struct {
		IRVersion    int64
		Producer     string
		ProducerText string // the version of the producer
		Domain       string
		Graph        *Graph
		Opsets       []Opset
		Metadata     []Entry
		Functions    []*Function
	}
	// Opset is OperatorSetIdProto.
	Opset struct {
		Domain  string
		Version int64
	}
	// Entry is StringStringEntryProto.
	Entry struct{ Key, Value string }
	// Graph is GraphProto.
	Graph struct {
		Name         string
		Nodes        []*Node
		Initializers []*Tensor
		Sparse       []*Sparse
		Inputs       []*ValueInfo
		Outputs      []*ValueInfo
	}
	// Function is FunctionProto.
	Function struct {
		Name       string
		Domain     string
		Overload   string
		Inputs     []string
		Outputs    []string
		Attributes []string
		Defaults   []*Attribute
		Nodes      []*Node
		Opsets     []Opset
	}
	// Node is NodeProto.
	Node struct {
		Name       string
		OpType     string
		Domain     string
		Overload   string
		Inputs     []string
		Outputs    []string
		Attributes []*Attribute
	}
	// Attribute is AttributeProto.
	Attribute struct {
		Name    string
		Type    int64
		RefName string
		F       float32
		I       int64
		S       string
		T       *Tensor
		G       *Graph
		TP      *Type
		Floats  []float32
		Ints    []int64
		Strings []string
		Tensors []*Tensor
		Graphs  []*Graph
		Sparse  *Sparse
	}
	// Tensor is TensorProto.
	Tensor struct {
		Name     string
		DType    int64
		Dims     []int64
		Raw      []byte
		HasRaw   bool
		Floats   []float32
		Int32s   []int64
		Int64s   []int64
		Doubles  []float64
		Uint64s  []int64
		Strings  []string
		External []Entry
		Location int64
	}
	// Sparse is SparseTensorProto.
	Sparse struct {
		Values  *Tensor
		Indices *Tensor
		Dims    []int64
	}
	// ValueInfo is ValueInfoProto.
	ValueInfo struct {
		Name string
		Type *Type
	}
	// Type is TypeProto: exactly one of its kinds is there.
	Type struct {
		Kind  Kind
		DType int64 // of a tensor
		// HasShape says that the rank of a tensor is known.
		HasShape bool
		Shape    []Dim
		Elem     *Type // of a sequence or an optional
	}
	// Dim is a dimension of TensorShapeProto: a size, a name, or neither.
	Dim struct {
		Size    int64
		HasSize bool
		Symbol  string
	}
	// Value is what a file of a test's inputs and outputs holds: a tensor, a sequence of values, or
	// nothing.
	Value struct {
		Tensor *Tensor
		Values []*Value
		IsSeq  bool
	}
)

// Kind is the kind of a type.
type Kind int

// The kinds of types.
const (
	KindNone Kind = iota
	KindTensor
	KindSequence
	KindMap
	KindOptional
	KindSparse
	KindOpaque
)

// The types of attributes.
const (
	AttrFloat   = 1
	AttrInt     = 2
	AttrString  = 3
	AttrTensor  = 4
	AttrGraph   = 5
	AttrFloats  = 6
	AttrInts    = 7
	AttrStrings = 8
	AttrTensors = 9
	AttrGraphs  = 10
)

// External is the data location of a tensor whose elements are in a file of their own.
const External = 1
