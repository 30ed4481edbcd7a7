// Package generate continues texts by a language model that computes the logits of the
// next token: text to tokens, runs of the model, draws, and tokens to text.
//
// The model has one input of tokens [rows, length], of i64 or i32, and perhaps a mask of
// the same shape; its output has logits [rows, length, tokens] of the token behind each
// one, or [rows, tokens] of that behind the last. Where the length varies the context
// grows; where it is fixed the tokens come first and the rest is filled up, so the model
// must be causal. It has no other inputs and keeps no state: each token costs a run over
// the whole context, in which requests of the same length share a run.
package generate

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/loris-ml/loris/data/tokenizer"
	"github.com/loris-ml/loris/internal/elements"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
)

// Options say how a model generates.
type Options struct {
	Tokenizer tokenizer.Tokenizer
	// Tokens, Mask and Logits are names of inputs and an output; empty ones are found
	// by their datatypes and shapes.
	Tokens, Mask, Logits string
	// End are tokens after which nothing follows.
	End []int64
}

// Generator continues texts. Its methods are safe for concurrent use.
type Generator struct {
	Options
	tokens, mask inference.Datatype // of the inputs; mask is empty without one
	fixed        int                // length that inputs must have, 0 where it varies
	most         int                // that they may have, 0 without a bound
	last         bool               // the logits are those behind the last token only
}

func badf(format string, args ...any) error {
	return inference.Errorf(inference.InvalidArgument, format, args...)
}

// New returns the Generator of a model, or says why it can't be one.
func New(m *model.Model, o Options) (*Generator, error) {
	g := &Generator{Options: o}
	at := -1
	for i := range m.Inputs {
		in := &m.Inputs[i]
		switch {
		case !in.Known || len(in.Dims) != 2:
			return nil, badf("generate: input %q is no [rows, length]; a model that generates takes tokens, and perhaps a mask", in.Name)
		case in.Name == o.Mask || (o.Mask == "" && (in.Name == "attention_mask" || in.Name == "mask")):
			g.Mask, g.mask = in.Name, in.Datatype
		case at < 0 && (in.Datatype == inference.Int64 || in.Datatype == inference.Int32) && (o.Tokens == "" || o.Tokens == in.Name):
			at = i
		default:
			return nil, badf("generate: input %q is neither the tokens nor the mask", in.Name)
		}
	}
	if at < 0 || (o.Mask != "" && g.mask == "") {
		return nil, badf("generate: the model has no input of tokens %q, or no mask %q", o.Tokens, o.Mask)
	}
	in := &m.Inputs[at]
	g.Options.Tokens, g.tokens = in.Name, in.Datatype
	if d := in.Dims[1]; d.Fixed() {
		g.fixed, g.most = int(d.Min), int(d.Min)
	} else if d.Max > 0 {
		g.most = int(min(d.Max, math.MaxInt32))
	}
	for i := range m.Outputs {
		out := &m.Outputs[i]
		if o.Logits != "" && out.Name != o.Logits || o.Logits == "" && i > 0 {
			continue
		}
		rank := len(out.Shape)
		if !floats[out.Datatype] || rank < 2 || rank > 3 || (rank == 2 && g.fixed > 0) {
			return nil, badf("generate: output %q is %s%v, and no logits [rows, length, tokens]", out.Name, out.Datatype, out.Shape)
		}
		if n := out.Shape[rank-1]; n > 0 && n < int64(o.Tokenizer.Size()) {
			return nil, badf("generate: output %q has logits of %d tokens, and the tokenizer has %d", out.Name, n, o.Tokenizer.Size())
		}
		g.Logits, g.last = out.Name, rank == 2
		return g, nil
	}
	return nil, badf("generate: the model has no output %q", o.Logits)
}

var floats = map[inference.Datatype]bool{inference.FP16: true, inference.BF16: true, inference.FP32: true, inference.FP64: true}

// DefaultMaxTokens is how many tokens are generated where a request does not say.
const DefaultMaxTokens = 16

// Infer runs the model once.
type Infer func(ctx context.Context, r *inference.Request) (*inference.Response, error)

// Generate continues a text, and calls emit with each piece of it that is sure, unless it
// is nil. An error of emit ends it.
func (g *Generator) Generate(ctx context.Context, infer Infer, r *inference.GenerateRequest, emit func(string) error) (*inference.GenerateResponse, error) {
	ids, err := g.Tokenizer.Encode(r.Text)
	switch {
	case err != nil:
		return nil, badf("text_input: %w", err)
	case len(ids) == 0:
		return nil, badf("text_input has no token to begin with")
	case g.most > 0 && len(ids) >= g.most:
		return nil, badf("text_input has %d tokens; the model's context has %d, of which one at least is for the answer", len(ids), g.most)
	}
	resp := &inference.GenerateResponse{ID: r.ID, InputTokens: len(ids), FinishReason: "length"}
	text := newText(g.Tokenizer, ids, r.Stop, emit)
	if r.Echo {
		if err := text.send(r.Text); err != nil {
			return nil, err
		}
	}
	draw := newSampler(r)
	most := r.MaxTokens
	if most == 0 {
		most = DefaultMaxTokens
	}
	for range most {
		if g.most > 0 && len(ids) >= g.most {
			break
		}
		next, err := g.next(ctx, infer, ids, r, draw, resp)
		if err != nil {
			return nil, err
		}
		resp.OutputTokens++
		if slices.Contains(g.End, next) {
			resp.FinishReason = "stop"
			break
		}
		ids = append(ids, next)
		stopped, err := text.add(next)
		if err != nil {
			return nil, err
		}
		if stopped {
			resp.FinishReason = "stop"
			break
		}
	}
	resp.Text, err = text.end()
	return resp, err
}

// next draws the token that follows others.
func (g *Generator) next(ctx context.Context, infer Infer, ids []int64, r *inference.GenerateRequest, draw *sampler, resp *inference.GenerateResponse) (int64, error) {
	length := max(g.fixed, len(ids))
	shape := []int64{1, int64(length)}
	q := &inference.Request{
		Model: r.Model, Version: r.Version,
		Inputs:  []inference.Tensor{{Name: g.Options.Tokens, Datatype: g.tokens, Shape: shape, Data: filled(g.tokens, ids, length)}},
		Outputs: []inference.RequestedOutput{{Name: g.Logits}},
	}
	if g.mask != "" {
		q.Inputs = append(q.Inputs, inference.Tensor{Name: g.Mask, Datatype: g.mask, Shape: shape, Data: filled(g.mask, slices.Repeat([]int64{1}, len(ids)), length)})
	}
	out, err := infer(ctx, q)
	if err != nil {
		return 0, err
	}
	defer out.Release()
	resp.Model, resp.Version, resp.Parameters = out.Model, out.Version, out.Parameters
	logits := out.Outputs[0]
	rows := 1
	if !g.last {
		rows = length
	}
	row := len(logits.Data) / rows
	if !g.last {
		logits.Data = logits.Data[(len(ids)-1)*row : len(ids)*row]
	}
	values := elements.DecodeFloats(logits.Datatype.DType(), logits.Data)
	if n := g.Tokenizer.Size(); len(values) > n { // some models have more, for their size's sake
		values = values[:n]
	}
	return draw.draw(values)
}

// filled writes numbers in a datatype, and then zeros.
func filled(d inference.Datatype, values []int64, length int) []byte {
	b := make([]byte, 0, length*d.Size())
	for _, v := range values {
		b = elements.AppendNumber(b, d.DType(), v)
	}
	return b[:cap(b)][:length*d.Size()]
}

// newSampler returns what draws the tokens of a request.
func newSampler(r *inference.GenerateRequest) *sampler {
	s := &sampler{temperature: r.Temperature, topK: r.TopK, topP: r.TopP}
	seed := rand.Uint64()
	if r.Seed != nil {
		seed = *r.Seed
	}
	s.random = rand.New(rand.NewPCG(seed, 0))
	return s
}
