package repository

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/loris-ml/loris/data/tokenizer"
	"github.com/loris-ml/loris/serve/internal/generate"
	"github.com/loris-ml/loris/serve/internal/inference"
	"github.com/loris-ml/loris/serve/internal/model"
	pb "github.com/loris-ml/loris/serve/internal/pb/inference"
)

// Generate continues a text by a model that has a tokenizer, all of it by one version.
func (r *Repository) Generate(ctx context.Context, req *inference.GenerateRequest, emit func(string) error) (*inference.GenerateResponse, error) {
	v, err := r.find(ctx, req.Model, req.Version)
	if err != nil {
		return nil, err
	}
	defer v.leave()
	if v.generator == nil {
		return nil, inference.Errorf(inference.Unimplemented, "model %q has no tokenizer: the parameter %s of its configuration names one", req.Model, paramTokenizer)
	}
	return v.generator.Generate(ctx, v.infer, req, emit)
}

// readGenerator reads the parameters about texts; nil without a tokenizer.
func readGenerator(c *pb.ModelConfig, m *model.Model, dir string) (*generate.Generator, error) {
	text := func(key string) string { return c.Parameters[key].GetStringValue() }
	name := text(paramTokenizer)
	if name == "" {
		for _, key := range []string{paramEnd, paramTokens, paramTokenMask, paramLogits} {
			if text(key) != "" {
				return nil, badf("parameters: %s needs %s", key, paramTokenizer)
			}
		}
		return nil, nil
	}
	if !filepath.IsLocal(name) || dir == "" {
		return nil, badf("parameters: %s %q leaves the model's folder", paramTokenizer, name)
	}
	t, err := tokenizer.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, badf("parameters: %s: %w", paramTokenizer, err)
	}
	o := generate.Options{Tokenizer: t, Tokens: text(paramTokens), Mask: text(paramTokenMask), Logits: text(paramLogits)}
	for word := range words(text(paramEnd)) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 || n >= int64(t.Size()) {
			return nil, badf("parameters: %s is %q: expected numbers of tokens, below %d, with commas", paramEnd, text(paramEnd), t.Size())
		}
		o.End = append(o.End, n)
	}
	return generate.New(m, o)
}
