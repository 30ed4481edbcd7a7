package ir

// opScan runs a Program once for each element of sequences. Package graph has its rules, which read
// the Program.
var opScan = declare("scan")

// ScanRules are the parts of scan's row that depend on the Program that it runs.
type ScanRules struct {
	Infer func(a Args) []Shape
	VJP   func(b *Builder, a Args, out, grad []Value) []Value
	// Body returns the text of the Program that computes roots from params, fresh leaves.
	Body func(params, roots []Value) string
}

var scanRules ScanRules

// RegisterScanRules completes the row of scan; package graph calls it when it is initialised.
func RegisterScanRules(r ScanRules) { scanRules = r }

func init() {
	register("scan(Tensor[] init, Tensor[] xs, Tensor[] consts, str body, int length, bool reverse=False, int every=0) -> Tensor[]", Spec{
		Doc: "A loop over the first dimension, of length elements, of xs, from the last to the first if reverse says so. body is the text of a Program " +
			"of the carried values, which are init at first, an element of each of xs, and consts. It returns the next carried values and results. " +
			"Returns the last carried values, the results of all elements, stacked, and with every > 0 the carried values before each every-th element, " +
			"stacked, for gradients; every > 1 excludes reverse.",
		Category: Scan, Unlisted: true,
		Infer: func(a Args) []Shape { return scanRules.Infer(a) },
		VJP: func(b *Builder, a Args, out, grad []Value) []Value {
			return scanRules.VJP(b, a, out, grad)
		},
	})
}

// bodyLeaf stands for a parameter of a loop's body.
type bodyLeaf struct{}

// LeafName returns "element".
func (bodyLeaf) LeafName() string { return "element" }

// loop records a scan of length elements. f writes the body: it gets values that stand for the
// carried ones, for an element of each of xs and for consts, and must use no others.
func (b *Builder) loop(init, xs, consts []Value, length int, reverse bool, f func(b *Builder, carry, x, consts []Value) (next, results []Value)) (last, stacked []Value) {
	var params []Value
	stand := func(vs []Value, drop int) []Value {
		from := len(params)
		for _, v := range vs {
			params = append(params, NewLeaf(bodyLeaf{}, v.Shape().WithDims(v.Shape().Dims()[drop:]...), Device{}).Out(0))
		}
		return params[from:len(params):len(params)]
	}
	carry, x, outer := stand(init, 0), stand(xs, 1), stand(consts, 0)
	next, results := f(&Builder{Lines: LinesOff}, carry, x, outer)
	body := scanRules.Body(params, append(next[:len(next):len(next)], results...))
	outs := b.Call(opScan, []any{init, xs, consts, body, length, reverse, 1})
	return outs[:len(next)], outs[len(next):][:len(results)]
}
