package nn

import (
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/internal/ir"
)

// Option sets up a layer. Each constructor says which it takes; another one
// panics with a *loris.OpError.
type Option struct {
	name string
	set  func(*config)
}

// config is what options set; newConfig replaces zero values by defaults.
type config struct {
	maker                           loris.Maker
	noBias                          bool
	noAffine                        bool
	noTracking                      bool
	affineOn, tracking              bool
	causal                          bool
	stride                          []int
	padding                         []int
	dilation                        []int
	outputPadding                   []int
	groups                          int
	eps                             float64
	hasEps                          bool
	momentum                        float64
	paddingIdx                      int
	kvHeads                         int
	kDim, vDim                      int
	weight                          Init
	rotary                          float64
	dropout                         float64
	bag                             string
	lastOffset                      bool
	gptqV2                          bool
	layers                          int
	bidirectional, batchFirst, relu bool
	normFirst                       bool
	activation                      func(x *loris.Tensor) *loris.Tensor
}

// newConfig applies the options to a layer, which takes With and those named.
func newConfig(layer string, opts []Option, names ...string) *config {
	c := &config{stride: []int{1}, padding: []int{0}, dilation: []int{1}, outputPadding: []int{0}, groups: 1, layers: 1, bag: "mean", momentum: 0.1, paddingIdx: -1}
	for _, o := range opts {
		if o.name != "With" && !slices.Contains(names, o.name) {
			panic(misuse(layer, "there is no option %s", o.name))
		}
		o.set(c)
	}
	return c
}

// misuse is the error of a mistake in building a layer.
func misuse(layer, format string, args ...any) error {
	return ir.NewOpError("nn."+layer, loris.ErrArg, nil, format, args...)
}

// misshapen is the error of an input of a layer.
func misshapen(layer string, x *loris.Tensor, format string, args ...any) error {
	e := ir.NewOpError("nn."+layer, loris.ErrShape, nil, format, args...)
	e.Shapes = []loris.Shape{x.Shape()}
	return e
}

// positive panics unless all sizes of a layer are at least 1.
func positive(layer string, sizes ...int) {
	for _, n := range sizes {
		if n < 1 {
			panic(misuse(layer, "a size is %d, must be at least 1", n))
		}
	}
}

// With sets the session, the device and the dtype of the layer's variables. The default is
// f32 in the default session. All layers take it.
func With(m loris.Maker) Option { return Option{"With", func(c *config) { c.maker = m }} }

// NoBias leaves out the bias, which layers have by default.
func NoBias() Option { return Option{"NoBias", func(c *config) { c.noBias = true }} }

// NoAffine leaves out the learned scale and shift of a norm.
func NoAffine() Option { return Option{"NoAffine", func(c *config) { c.noAffine = true }} }

// NoTracking leaves out a batch norm's running statistics, so that it always uses those of
// the batch.
func NoTracking() Option { return Option{"NoTracking", func(c *config) { c.noTracking = true }} }

// Affine adds a learned scale and shift to an instance norm, which has none by default.
func Affine() Option { return Option{"Affine", func(c *config) { c.affineOn = true }} }

// Tracking adds running statistics to an instance norm, which has none by default.
func Tracking() Option { return Option{"Tracking", func(c *config) { c.tracking = true }} }

// Stride is the distance between the windows of a convolution: one number for all
// dimensions or one for each. The default is 1.
func Stride(v ...int) Option { return Option{"Stride", func(c *config) { c.stride = v }} }

// Padding is the number of zeros on both sides of a convolution's input: one number for
// all dimensions or one for each. The default is 0.
func Padding(v ...int) Option { return Option{"Padding", func(c *config) { c.padding = v }} }

// Dilation is the distance between the elements of a convolution's window: one number for
// all dimensions or one for each. The default is 1.
func Dilation(v ...int) Option { return Option{"Dilation", func(c *config) { c.dilation = v }} }

// OutputPadding enlarges the output of a transposed convolution at one side: one number for
// all dimensions or one for each. The default is 0.
func OutputPadding(v ...int) Option {
	return Option{"OutputPadding", func(c *config) { c.outputPadding = v }}
}

// Groups divides a convolution's channels into groups that do not mix. The
// default is 1.
func Groups(n int) Option { return Option{"Groups", func(c *config) { c.groups = n }} }

// Eps is added to the variance in a norm, or to the mean square in an RMSNorm. The default
// is 1e-5, for an RMSNorm the epsilon of the dtype.
func Eps(v float64) Option {
	return Option{"Eps", func(c *config) { c.eps, c.hasEps = v, true }}
}

// Momentum is the weight of the newest batch in a batch norm's running
// statistics. The default is 0.1.
func Momentum(v float64) Option { return Option{"Momentum", func(c *config) { c.momentum = v }} }

// PaddingIdx sets the row of an embedding that is initialised to zero and gets no gradient.
// By default there is none.
func PaddingIdx(i int) Option { return Option{"PaddingIdx", func(c *config) { c.paddingIdx = i }} }

// KVHeads is the number of heads of key and value, each shared by a group of query heads.
// The default is a head for each query head.
func KVHeads(n int) Option { return Option{"KVHeads", func(c *config) { c.kvHeads = n }} }

// KVDims are the features of an attention's key and value, if they differ from
// the query's.
func KVDims(key, value int) Option {
	return Option{"KVDims", func(c *config) { c.kDim, c.vDim = key, value }}
}

// Causal lets each position attend only to itself and earlier ones.
func Causal() Option { return Option{"Causal", func(c *config) { c.causal = true }} }

// DropoutP is the probability of dropout inside a layer in training: between the layers of a
// recurrent one, of an attention's weights, throughout a TransformerEncoderLayer. The default is 0.
func DropoutP(p float64) Option { return Option{"DropoutP", func(c *config) { c.dropout = p }} }

// Rotary gives an attention rotary positions with the given base, 10000 say: queries and keys are
// turned by angles that grow with their position, features of the first half of a head together
// with those of the second, as in Llama.
func Rotary(base float64) Option { return Option{"Rotary", func(c *config) { c.rotary = base }} }

// BagMode says what an EmbeddingBag makes of the rows of a bag: "mean", which is the
// default, "sum" or "max".
func BagMode(mode string) Option { return Option{"BagMode", func(c *config) { c.bag = mode }} }

// IncludeLastOffset says that the offsets of an EmbeddingBag have the end of the last bag
// behind them.
func IncludeLastOffset() Option {
	return Option{"IncludeLastOffset", func(c *config) { c.lastOffset = true }}
}

// Layers is the number of recurrent layers, of which each has the one before as its input.
// The default is 1.
func Layers(n int) Option { return Option{"Layers", func(c *config) { c.layers = n }} }

// Bidirectional adds to each recurrent layer one that goes from the last time to the first.
func Bidirectional() Option {
	return Option{"Bidirectional", func(c *config) { c.bidirectional = true }}
}

// BatchFirst says that input and output of a recurrent layer are [batch, time, features]
// instead of [time, batch, features]. States are not affected.
func BatchFirst() Option { return Option{"BatchFirst", func(c *config) { c.batchFirst = true }} }

// ReLUCell gives an RNN relu in place of tanh.
func ReLUCell() Option { return Option{"ReLUCell", func(c *config) { c.relu = true }} }

// NormFirst normalises what a TransformerEncoderLayer's attention and perceptron are given in place
// of the sums behind them.
func NormFirst() Option { return Option{"NormFirst", func(c *config) { c.normFirst = true }} }

// Activation is the function within a TransformerEncoderLayer's perceptron. The default is ReLU.
func Activation(f func(x *loris.Tensor) *loris.Tensor) Option {
	return Option{"Activation", func(c *config) { c.activation = f }}
}

// InitWeight replaces the initial distribution of the weight.
func InitWeight(f Init) Option { return Option{"InitWeight", func(c *config) { c.weight = f }} }

// newVariable returns a variable whose initial value is recorded. The recorded tensor is
// discarded, so that MarkStep computes it only as the variable's value, and not at all if
// a file is loaded before the first step.
func (c *config) newVariable(init Init, dims ...int) *loris.Variable {
	t := init(c.maker, dims...)
	if t.Pending() {
		t.Discard()
	}
	return loris.NewVariable(t)
}

// newWeight is newVariable for the weight, whose distribution can be replaced.
func (c *config) newWeight(def Init, dims ...int) *loris.Variable {
	if c.weight != nil {
		def = c.weight
	}
	return c.newVariable(def, dims...)
}
