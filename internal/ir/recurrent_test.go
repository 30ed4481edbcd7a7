package ir_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/loris-ml/loris/internal/ir"
)

// ramp is a tensor of the numbers for which PyTorch's results below were computed.
func ramp(seed int, dims ...int) data {
	d := fs(dims, make([]float64, ir.MakeShape(ir.F64, dims...).Numel())...)
	for i := range d.vals {
		d.vals[i] = math.RoundToEven(float64((i*7+seed*3)%11-5)/8*1000) / 1000
	}
	return d
}

// stacked has the weights of two layers of two directions, of 2 features and 2 hidden elements.
func stacked(gates int) []data {
	var params []data
	seed := 2
	for _, features := range []int{2, 2, 4, 4} {
		params = append(params, ramp(seed, gates*2, features), ramp(seed+1, gates*2, 2), ramp(seed+2, gates*2), ramp(seed+3, gates*2))
		seed += 4
	}
	return params
}

func TestRecurrentLayersArePyTorchs(t *testing.T) {
	x, h, c := ramp(1, 2, 1, 2), ramp(40, 4, 1, 2), ramp(41, 4, 1, 2)
	layers := func(op string, gates int, hx any) opCall {
		return call(op, x, hx, stacked(gates), true, 2, 0.0, false, true, false)
	}
	checkValues(t, []valueCase{
		{layers("lstm", 4, []data{h, c}), [][]float64{
			{0.08912562049839684, 0.09092948076233168, -0.03548227847122163, 0.144143833199038, 0.06356225285676954, 0.12109382102978089, -0.19145259667904063, 0.13864202902843958},
			{0.1614399462024706, -0.03383524365376323, -0.03534911964588146, 0.13634937040352457, 0.06356225285676954, 0.12109382102978089, -0.03548227847122163, 0.144143833199038},
			{0.3320851696886048, -0.04865576361783413, -0.08988813507751858, 0.2130575046940986, 0.1970849110475284, 0.266830968019271, -0.09826769019807974, 0.27365381845123965}}},
		{layers("gru", 3, h), [][]float64{
			{0.12655160944372645, -0.009705647344100288, 0.2835921562390721, 0.24136721746996076, 0.24505130365424477, 0.14420197289287034, 0.30598450497897633, 0.1294320576093953},
			{0.590859489571086, -0.2549822904315395, 0.0028915035036045826, 0.3342273824401234, 0.24505130365424477, 0.14420197289287034, 0.2835921562390721, 0.24136721746996076}}},
		{layers("rnn_tanh", 1, h), [][]float64{
			{0.10341274091482043, -0.4358325312530191, 0.06461538964229223, -0.2330445591434468, -0.1646501604708352, -0.17619573746573386, -0.07190472364918714, -0.7058886987043156},
			{-0.6226985381960357, -0.13796079541240613, -0.6601076678590913, 0.26415536216267316, -0.1646501604708352, -0.17619573746573386, 0.06461538964229223, -0.2330445591434468}}},
		{layers("rnn_relu", 1, h), [][]float64{{0, 0, 0.150390625, 0, 0, 0.091796875, 0.048828125, 0}, {0, 0, 0, 0.1328125, 0, 0.091796875, 0.150390625, 0}}},
	})
}

func TestGradientsOfRecurrentLayers(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	r := func(dims ...int) data { return rnd(rng, dims...) }
	checkGradients(t, rng, 1, []opCall{
		call("lstm", r(2, 1, 2), []data{r(2, 1, 2), r(2, 1, 2)}, []data{r(8, 2), r(8, 2), r(8, 2), r(8, 2)}, false, 1, 0.0, false, true, false),
		call("lstm", r(3, 1), []data{r(1, 1), r(1, 1)}, []data{r(4, 1), r(4, 1), r(4), r(4)}, true, 1, 0.0, true, false, true),
		call("gru", r(1, 3, 2), r(1, 1, 2), []data{r(6, 2), r(6, 2), r(6), r(6)}, true, 1, 0.0, false, false, true),
		call("rnn_tanh", r(2, 2, 1), r(1, 2, 2), []data{r(2, 1), r(2, 2)}, false, 1, 0.0, false, false, false),
		call("rnn_relu", r(2, 2, 1), r(1, 2, 2), []data{r(2, 1), r(2, 2)}, false, 1, 0.0, false, false, false),
		call("lstm_cell", r(2, 1), []data{r(2, 2), r(2, 2)}, r(8, 1), r(8, 2), r(8)),
		call("gru_cell", r(2, 1), r(2, 2), r(6, 1), r(6, 2), r(6), r(6)),
		call("rnn_tanh_cell", r(2, 1), r(2, 2), r(2, 1), r(2, 2)),
		call("rnn_relu_cell", r(2, 1), r(2, 2), r(2, 1), r(2, 2)),
		call("_thnn_fused_lstm_cell", r(2, 8), r(2, 8), r(2, 2), r(8)),
	})
}
