package train

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loris-ml/loris"
	"github.com/loris-ml/loris/nn"
	"github.com/loris-ml/loris/optim"
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
// trained with.
func ReadConfig(path string) (Config, error) {
	meta, err := nn.Metadata(path)
	if err != nil {
		return Config{}, err
	}
	text, ok := meta[metaConfig]
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
	return c, nil
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
