// Package data feeds training programs: datasets, and loaders that read them in batches beside the
// training.
//
//	ds, err := data.Rows(images, labels) // or data.Tensors(file, "images", "labels"), data.Files(…), …
//	l := data.NewLoader(ds, 64, data.Stack, data.Shuffle(seed), data.DropLast())
//	defer l.Close()
//	for range epochs {
//		for batch, err := range l.Epoch(ctx) {
//			if err != nil {
//				return err
//			}
//			t := batch.Tensors(session.With()) // images, labels
//			…
//		}
//	}
//
// A Dataset gives samples by their number. A Loader draws them in an order that a seed decides,
// makes batches of them on goroutines, a bounded number ahead, and hands them out in order. Which
// batches come, bit for bit, depends on the dataset, the seed and the options, not on how many
// goroutines there are or how fast they were; random transforms (Augment) have numbers of their own
// for each sample. State is where a loader stands, to be saved with the weights: a loader that
// resumes from it gives the batches that would have come. Several processes share an epoch by Shard.
//
// Batches are host memory. They become tensors where the training program wants them, by
// Sample.Tensors.
package data
