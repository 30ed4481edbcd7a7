package train

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/examples/digits"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
	"github.com/loris-ml/loris/safetensors"
)

// metaConfig is the entry of a file's metadata that holds the Config as JSON.
const metaConfig = "digits.config"

// SaveWeights writes the weights to a safetensors file, which PyTorch reads, too.
func (t *Trainer) SaveWeights(ctx context.Context, path string) error {
	meta, err := t.metadata()
	if err != nil {
		return err
	}
	return nn.Save(ctx, path, t.model, meta)
}

// SaveCheckpoint writes what a resumption needs: weights, the optimiser's state,
// the number of steps and the seed.
func (t *Trainer) SaveCheckpoint(ctx context.Context, path string) error {
	meta, err := t.metadata()
	if err != nil {
		return err
	}
	return (&optim.Checkpoint{Model: t.model, Optimizer: t.opt, Step: t.opt.Steps(), Metadata: meta}).Save(ctx, path)
}

// LoadCheckpoint goes back to where SaveCheckpoint was called. The settings
// should be those of the file (ReadConfig): training then goes on exactly as it
// would have, but for the epochs, of which there may be more.
func (t *Trainer) LoadCheckpoint(ctx context.Context, path string) error {
	return (&optim.Checkpoint{Model: t.model, Optimizer: t.opt}).Load(ctx, path)
}

func (t *Trainer) metadata() (map[string]string, error) {
	b, err := json.Marshal(t.cfg)
	return map[string]string{metaConfig: string(b)}, err
}

// ReadConfig returns the settings that a file of weights or a checkpoint was
// trained with. Layers that the file has no weights for are an error.
func ReadConfig(path string) (Config, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return Config{}, err
	}
	defer f.Close()
	text, ok := f.Metadata()[metaConfig]
	if !ok {
		return Config{}, fmt.Errorf("%s: not weights of the digits example: there is no %q in its metadata", path, metaConfig)
	}
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return Config{}, fmt.Errorf("%s: %s: %w", path, metaConfig, err)
	}
	if err := c.check(); err != nil {
		return Config{}, fmt.Errorf("%s: %s: %w", path, metaConfig, err)
	}
	if err := c.checkLayers(f); err != nil {
		return Config{}, fmt.Errorf("%s: %s: %w", path, metaConfig, err)
	}
	return c, nil
}

// checkLayers compares the hidden layers with the weights of the file, so that no
// model larger than its file is made.
func (c *Config) checkLayers(f *safetensors.File) error {
	prefix := ""
	if _, ok := f.Lookup("model.0.weight"); ok {
		prefix = "model."
	}
	in := digits.Features
	for i, n := range c.Hidden {
		name := fmt.Sprintf("%s%d.weight", prefix, 2*i)
		w, ok := f.Lookup(name)
		if !ok {
			return fmt.Errorf("there are %d hidden layers, but no weights %q", len(c.Hidden), name)
		}
		if !slices.Equal(w.Shape, []int64{int64(n), int64(in)}) {
			return fmt.Errorf("hidden layer %d has %d units of %d inputs, but its weights %q are %v", i, n, in, name, w.Shape)
		}
		in = n
	}
	return nil
}

// LoadModel returns the model of a file of weights, ready to predict, its
// variables made by m.
func LoadModel(ctx context.Context, path string, m loris.Maker) (*nn.Sequential, error) {
	c, err := ReadConfig(path)
	if err != nil {
		return nil, err
	}
	model := Model(m, c.Hidden, c.Dropout)
	model.SetTraining(false)
	if _, err := nn.Load(ctx, path, model); err != nil {
		return nil, err
	}
	return model, nil
}
