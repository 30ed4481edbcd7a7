"""Export a ResNet-18 for examples/finetune: python examples/finetune/export.py resnet18.pt2 [--width 64]

Needs PyTorch alone. The network is torchvision's resnet18 with ten classes, narrower by --width, for images
[batch, 3, 32, 32]. It learns the digits 0 to 4 here and has never seen the others, which the Go program
teaches it.
"""
import argparse, csv, gzip, pathlib
import torch
from torch import nn

DIGITS = pathlib.Path(__file__).parent.parent / "digits" / "digits.csv.gz"


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu, self.downsample = nn.ReLU(inplace=True), None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet18(nn.Module):
    """Its parameters have torchvision's names."""

    def __init__(self, width, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        sizes = [width, width, 2 * width, 4 * width, 8 * width]
        for i in range(1, 5):
            setattr(self, f"layer{i}", nn.Sequential(Block(sizes[i - 1], sizes[i], 1 if i == 1 else 2), Block(sizes[i], sizes[i], 1)))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def digits():
    """The images of the digits 0 to 4, enlarged to [n, 3, 32, 32], and their labels."""
    with gzip.open(DIGITS, "rt") as f:
        rows = torch.tensor([[float(v) for v in r] for r in csv.reader(f)])
    rows = rows[rows[:, -1] < 5]
    images = (rows[:, :64] / 16).reshape(-1, 1, 8, 8)
    return nn.functional.interpolate(images, scale_factor=4.0).expand(-1, 3, -1, -1).contiguous(), rows[:, -1].long()


def train(model, epochs):
    images, labels = digits()
    steps = -(-len(images) // 32) * epochs
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-2, total_steps=steps)
    model.train()
    for epoch in range(epochs):
        for at in torch.randperm(len(images)).split(32):
            loss = nn.functional.cross_entropy(model(images[at]), labels[at])
            opt.zero_grad()
            loss.backward()
            opt.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean()
    print(f"loss {loss.item():.4f}, {right.item():.1%} of the digits 0 to 4 right")


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("out")
    args.add_argument("--width", type=int, default=64)
    args.add_argument("--epochs", type=int, default=3)
    args.add_argument("--plain", action="store_true", help="without the lines of Python, for a smaller file")
    args = args.parse_args()
    torch.manual_seed(0)
    model = ResNet18(args.width, 10)
    train(model, args.epochs)
    batch = torch.export.Dim("batch", min=1, max=4096)
    program = torch.export.export(model, (torch.randn(2, 3, 32, 32),), dynamic_shapes=({0: batch},))
    if args.plain:
        for n in program.graph.nodes:
            for key in ("nn_module_stack", "source_fn_stack", "torch_fn", "from_node", "stack_trace"):
                n.meta.pop(key, None)
    torch.export.save(program, args.out)


main()
