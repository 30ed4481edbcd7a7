// Package hub reads the folders in which models of Hugging Face lie, and downloads them.
//
//	f, err := hub.Open("all-MiniLM-L6-v2")                       // a folder that is there
//	f, err = new(hub.Client).Download(ctx, "sentence-transformers/all-MiniLM-L6-v2", "main")
//	err = f.Config(&config)                                      // config.json
//	_, err = f.Load(ctx, net, nn.Prefix("bert."))                // model.safetensors, or the index and its shards
//	path, err := f.Path("tokenizer.json")                        // for tokenizer.Open
//
// Downloads go to a cache that is laid out as that of huggingface_hub, at the same place and under the
// same locks, so that each finds what the other has loaded. An interrupted download goes on where it
// ended, and what arrives is held against the checksum that the server tells before it is used. Only
// files are read: nothing of a model is executed.
package hub
