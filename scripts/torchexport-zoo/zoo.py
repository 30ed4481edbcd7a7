"""Export many architectures with random weights, run each in Loris, and print how far the results are off.

    python3 -m venv .venv-zoo && .venv-zoo/bin/pip install torch torchvision transformers timm safetensors
    go build -o zoo-run ./scripts/torchexport-zoo
    .venv-zoo/bin/python scripts/torchexport-zoo/zoo.py ./zoo-run [--only REGEXP] [--bf16] [--train] [--out table.md]

Each model is small: few layers, narrow, with random weights. Its program is written to a temporary folder,
with inputs of two sizes (batch, and for texts also length) and PyTorch's results, and deleted afterwards. An
error is the largest difference to PyTorch's over the largest element of that output, over all outputs and both
sizes; with --train, of the gradients after five steps of SGD, and then how far those of Loris and those of PyTorch
are off from PyTorch's in f64 (0 for models that do not run in f64). Models that the file of --out has already are
left out, so that a run that was stopped goes on.
"""
import argparse, copy, json, re, shutil, subprocess, sys, tempfile, time, traceback, warnings, logging
import torch
from torch.export import Dim
from safetensors.torch import save_file

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

ZOO = {}


def zoo(name, kind):
    def add(f):
        ZOO[name] = (kind, f)
        return f
    return add


def ids(n, *s):
    return torch.randint(3, n, s)


def image(b, size=64, c=3):
    return torch.randn(b, c, size, size)


# torchvision and timm: whole models of small kinds, on small images.

def vision(name, size=64, **kw):
    def make():
        import torchvision
        if "deeplab" in name or "fcn" in name or "lraspp" in name:
            kw.setdefault("weights_backbone", None)
            m = getattr(torchvision.models.segmentation, name)(weights=None, num_classes=5, **kw)
        elif "3d" in name or "mc3" in name:
            m = getattr(torchvision.models.video, name)(weights=None, num_classes=10)
            return m, [(torch.randn(b, 3, 4, 32, 32),) for b in (2, 3)], [{0: Dim.AUTO}]
        else:
            m = getattr(torchvision.models, name)(weights=None, **kw)
        return m, [(image(b, size),) for b in (2, 3)], [{0: Dim.AUTO}]
    ZOO["torchvision/" + name] = ("vision", make)


for n in ("resnet18 mobilenet_v2 mobilenet_v3_small efficientnet_b0 densenet121 squeezenet1_1 shufflenet_v2_x0_5 mnasnet0_5 regnet_y_400mf "
          "convnext_tiny swin_t swin_v2_t deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large r3d_18 mc3_18").split():
    vision(n)
vision("googlenet", aux_logits=False, init_weights=False)
vision("inception_v3", 96, aux_logits=False, init_weights=False)
vision("alexnet", 72)
vision("vgg11_bn")
vision("maxvit_t", 224)


def timm_model(name, size=64, **kw):
    def make():
        import timm
        m = timm.create_model(name, pretrained=False, num_classes=10, **kw)
        return m, [(image(b, size),) for b in (2, 3)], [{0: Dim.AUTO}]
    ZOO["timm/" + name] = ("vision", make)


for n in ("mobilevit_xxs ghostnet_100 rexnet_100 edgenext_xx_small poolformer_s12 pvt_v2_b0 mobileone_s0 repvgg_a0 hardcorenas_a tinynet_e "
          "efficientvit_b0 fastvit_t8 regnetz_005 ese_vovnet19b_slim_dw dla46_c lcnet_050 resnest14d nf_regnet_b0 skresnet18 selecsls42b res2net50_14w_8s hrnet_w18_small convmixer_768_32 focalnet_tiny_srf inception_next_atto").split():
    timm_model(n)
for n, kw in {"vit_tiny_patch16_224": dict(img_size=64), "deit_tiny_patch16_224": dict(img_size=64), "mixer_s32_224": dict(img_size=64), "gmlp_ti16_224": dict(img_size=64),
              "resmlp_12_224": dict(img_size=64), "xcit_nano_12_p16_224": dict(img_size=64), "cait_xxs24_224": dict(img_size=64), "beit_base_patch16_224": dict(img_size=64, depth=2),
              "twins_pcpvt_small": dict(img_size=64), "visformer_tiny": dict(img_size=64), "coat_tiny": dict(img_size=64), "eva02_tiny_patch14_224": dict(img_size=56)}.items():
    timm_model(n, kw["img_size"], **kw)
timm_model("levit_128s", 224)
timm_model("crossvit_tiny_240", 240)
timm_model("coatnet_nano_rw_224", 224)
timm_model("tiny_vit_5m_224", 224)

# transformers: configurations of a few narrow layers.

SMALL = dict(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64)


class Outputs(torch.nn.Module):
    """A model of transformers that returns its tensors in order, and no cache."""

    def __init__(self, m, names):
        super().__init__()
        self.m, self.names = m, names

    def forward(self, *args):
        out = self.m(**dict(zip(self.names, args)))
        return [v for k, v in out.items() if isinstance(v, torch.Tensor)][:3]


def text(name, cls, kind="text", names=("input_ids", "attention_mask"), vocab=99, lengths=(11, 7), **kw):
    def make():
        import transformers
        config = getattr(transformers, cls.replace("ForCausalLM", "").replace("LMHeadModel", "").replace("ForMaskedLM", "").replace("Model", "") + "Config")
        c = {**SMALL, **kw}
        conf = config(**c)
        conf.use_cache = False
        m = getattr(transformers, cls)(conf)
        m.config.use_cache = False
        cases = []
        for b, t in ((2, lengths[0]), (3, lengths[1])):
            mask = torch.ones(b, t, dtype=torch.long)
            mask[0, -2:] = 0 if kind == "text" else 1
            cases.append((ids(vocab, b, t), mask)[: len(names)])
        return Outputs(m, names), cases, [{0: Dim.AUTO, 1: Dim.AUTO}] * len(names)
    ZOO["transformers/" + name] = (kind, make)


for n, c in dict(bert="BertModel", roberta="RobertaModel", albert="AlbertModel", electra="ElectraModel", mpnet="MPNetModel", ernie="ErnieModel", camembert="CamembertModel",
                 xlm_roberta="XLMRobertaModel", roformer="RoFormerModel", nystromformer="NystromformerModel", layoutlm="LayoutLMModel", squeezebert="SqueezeBertModel",
                 convbert="ConvBertModel", mega="MegatronBertModel", data2vec="Data2VecTextModel", rembert="RemBertModel", ibert="IBertModel").items():
    text(n, c, **({"embedding_size": 32} if n in ("albert", "electra", "roformer", "squeezebert", "convbert") else {}))
text("deberta_v2", "DebertaV2Model", relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8)
text("deberta", "DebertaModel", relative_attention=True, pos_att_type=["c2p", "p2c"])
text("distilbert", "DistilBertModel", dim=32, n_layers=2, n_heads=4, hidden_dim=48)
text("modernbert", "ModernBertModel", pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
text("fnet", "FNetModel", names=("input_ids",), lengths=(16, 16))
text("mobilebert", "MobileBertModel", embedding_size=16, true_hidden_size=16, intra_bottleneck_size=16)

CAUSAL = dict(num_key_value_heads=2, head_dim=8, pad_token_id=0, bos_token_id=1, eos_token_id=2)
for n, c in dict(llama="LlamaForCausalLM", mistral="MistralForCausalLM", qwen2="Qwen2ForCausalLM", qwen3="Qwen3ForCausalLM", gemma="GemmaForCausalLM", gemma2="Gemma2ForCausalLM",
                 phi="PhiForCausalLM", phi3="Phi3ForCausalLM", stablelm="StableLmForCausalLM", olmo="OlmoForCausalLM", olmo2="Olmo2ForCausalLM", starcoder2="Starcoder2ForCausalLM",
                 cohere="CohereForCausalLM", granite="GraniteForCausalLM", smollm3="SmolLM3ForCausalLM", glm="GlmForCausalLM", nemotron="NemotronForCausalLM", helium="HeliumForCausalLM",
                 persimmon="PersimmonForCausalLM", gpt_neox="GPTNeoXForCausalLM", exaone4="Exaone4ForCausalLM", ministral="MinistralForCausalLM").items():
    text(n, c, "causal", **CAUSAL)
text("gpt2", "GPT2LMHeadModel", "causal", n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
text("gpt_neo", "GPTNeoForCausalLM", "causal", num_layers=2, attention_types=[[["global", "local"], 1]], num_heads=4, bos_token_id=1, eos_token_id=2)
text("gptj", "GPTJForCausalLM", "causal", n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=64, bos_token_id=1, eos_token_id=2)
text("codegen", "CodeGenForCausalLM", "causal", n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=64, bos_token_id=1, eos_token_id=2)
text("opt", "OPTForCausalLM", "causal", ffn_dim=48, word_embed_proj_dim=32, bos_token_id=1, eos_token_id=2)
text("bloom", "BloomForCausalLM", "causal", n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2)
text("falcon", "FalconForCausalLM", "causal", bos_token_id=1, eos_token_id=2)
text("mpt", "MptForCausalLM", "causal", d_model=32, n_heads=4, n_layers=2, max_seq_len=64)
text("xglm", "XGLMForCausalLM", "causal", d_model=32, attention_heads=4, ffn_dim=48, num_layers=2, bos_token_id=1, eos_token_id=2)
text("biogpt", "BioGptForCausalLM", "causal", bos_token_id=1, eos_token_id=2)
MOE = dict(CAUSAL, num_experts_per_tok=2)
text("mixtral", "MixtralForCausalLM", "MoE", num_local_experts=4, **MOE)
text("qwen2_moe", "Qwen2MoeForCausalLM", "MoE", num_experts=4, moe_intermediate_size=16, shared_expert_intermediate_size=16, **MOE)
text("qwen3_moe", "Qwen3MoeForCausalLM", "MoE", num_experts=4, moe_intermediate_size=16, **MOE)
text("olmoe", "OlmoeForCausalLM", "MoE", num_experts=4, **MOE)
text("granitemoe", "GraniteMoeForCausalLM", "MoE", num_local_experts=4, **MOE)
text("gpt_oss", "GptOssForCausalLM", "MoE", num_local_experts=4, **MOE)
text("deepseek_v3", "DeepseekV3ForCausalLM", "MoE", n_routed_experts=4, n_group=1, topk_group=1, moe_intermediate_size=16, kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=8,
     qk_nope_head_dim=8, v_head_dim=8, n_shared_experts=1, first_k_dense_replace=1, num_experts_per_tok=2, num_key_value_heads=4, pad_token_id=0, bos_token_id=1, eos_token_id=2)
text("phimoe", "PhimoeForCausalLM", "MoE", num_local_experts=4, **MOE)
text("mamba", "MambaForCausalLM", "state space", names=("input_ids",), state_size=4, pad_token_id=0, bos_token_id=1, eos_token_id=2)
text("mamba2", "Mamba2ForCausalLM", "state space", names=("input_ids",), state_size=4, num_heads=8, head_dim=8, n_groups=2, chunk_size=4, pad_token_id=0, bos_token_id=1, eos_token_id=2)
text("falcon_mamba", "FalconMambaForCausalLM", "state space", names=("input_ids",), state_size=4, pad_token_id=0, bos_token_id=1, eos_token_id=2)
text("recurrent_gemma", "RecurrentGemmaForCausalLM", "state space", lru_width=32, attention_window_size=8, conv1d_width=4, block_types=["recurrent", "attention"], **CAUSAL)


def seq2seq(name, cls, **kw):
    def make():
        import transformers
        conf = getattr(transformers, re.sub("(MTModel|Model|For.*)$", "", cls) + "Config")(
            vocab_size=99, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=64, decoder_start_token_id=1, pad_token_id=0, eos_token_id=2, bos_token_id=1, use_cache=False, **kw)
        m = getattr(transformers, cls)(conf)
        cases = [(ids(99, b, t), ids(99, b, u)) for b, t, u in ((2, 9, 6), (3, 7, 5))]
        return Outputs(m, ("input_ids", "decoder_input_ids")), cases, [{0: Dim.AUTO, 1: Dim.AUTO}] * 2
    ZOO["transformers/" + name] = ("seq2seq", make)


for n, c in dict(t5="T5ForConditionalGeneration", bart="BartForConditionalGeneration", pegasus="PegasusForConditionalGeneration", m2m_100="M2M100ForConditionalGeneration",
                 mbart="MBartForConditionalGeneration", blenderbot="BlenderbotForConditionalGeneration", mt5="MT5ForConditionalGeneration", umt5="UMT5ForConditionalGeneration", marian="MarianMTModel").items():
    seq2seq(n, c)


def other(name, kind, cls, names, cases, dynamic, **kw):
    def make():
        import transformers
        m = getattr(transformers, cls)(getattr(transformers, re.sub("(For.*|Model)$", "", cls) + "Config")(**kw))
        return Outputs(m, names), cases(), dynamic
    ZOO["transformers/" + name] = (kind, make)


AUDIO = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 6), num_conv_pos_embeddings=16,
             num_conv_pos_embedding_groups=2, feat_extract_norm="group", num_feat_extract_layers=2)
wave = lambda: [(torch.randn(b, n),) for b, n in ((2, 800), (3, 640))]
for n, c in dict(wav2vec2="Wav2Vec2Model", hubert="HubertModel", wavlm="WavLMModel", unispeech="UniSpeechModel", unispeech_sat="UniSpeechSatModel", data2vec_audio="Data2VecAudioModel").items():
    other(n, "audio", c, ("input_values",), wave, [{0: Dim.AUTO}], **AUDIO)
other("whisper", "audio", "WhisperForConditionalGeneration", ("input_features", "decoder_input_ids"), lambda: [(torch.randn(b, 8, 40), ids(99, b, 5)) for b in (2, 3)], [{0: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO}],
      vocab_size=99, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
      max_source_positions=20, max_target_positions=32, decoder_start_token_id=1, pad_token_id=0, eos_token_id=2, bos_token_id=1, use_cache=False, suppress_tokens=None, begin_suppress_tokens=None)
other("ast", "audio", "ASTModel", ("input_values",), lambda: [(torch.randn(b, 40, 32),) for b in (2, 3)], [{0: Dim.AUTO}], hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
      patch_size=8, max_length=40, num_mel_bins=32, frequency_stride=8, time_stride=8)
TOWER = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)
VIT = dict(TOWER, image_size=32, patch_size=8)
pics = lambda: [(image(b, 32),) for b in (2, 3)]
for n, c in dict(vit="ViTModel", deit="DeiTModel", beit="BeitModel", dinov2="Dinov2Model", ijepa="IJepaModel", vit_msn="ViTMSNModel", yolos="YolosModel").items():
    other(n, "vision", c, ("pixel_values",), pics, [{0: Dim.AUTO}], **({**VIT, "image_size": [32, 32]} if n == "yolos" else VIT))
other("dinov2_registers", "vision", "Dinov2WithRegistersModel", ("pixel_values",), pics, [{0: Dim.AUTO}], **VIT)
other("segformer", "vision", "SegformerForSemanticSegmentation", ("pixel_values",), lambda: [(image(b, 64),) for b in (2, 3)], [{0: Dim.AUTO}], hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], decoder_hidden_size=16)
other("swinv2", "vision", "Swinv2Model", ("pixel_values",), lambda: [(image(b, 32),) for b in (2, 3)], [{0: Dim.AUTO}], image_size=32, patch_size=2, embed_dim=16, depths=[1, 2], num_heads=[2, 2], window_size=4)
other("swin", "vision", "SwinModel", ("pixel_values",), lambda: [(image(b, 32),) for b in (2, 3)], [{0: Dim.AUTO}], image_size=32, patch_size=2, embed_dim=16, depths=[1, 2], num_heads=[2, 2], window_size=4)
other("convnextv2", "vision", "ConvNextV2Model", ("pixel_values",), pics, [{0: Dim.AUTO}], hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1])
other("mobilevitv2", "vision", "MobileViTV2Model", ("pixel_values",), lambda: [(image(b, 64),) for b in (2, 3)], [{0: Dim.AUTO}], width_multiplier=0.25, image_size=64)
other("regnet", "vision", "RegNetModel", ("pixel_values",), pics, [{0: Dim.AUTO}], embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], groups_width=4)
other("cvt", "vision", "CvtModel", ("pixel_values",), lambda: [(image(b, 64),) for b in (2, 3)], [{0: Dim.AUTO}], embed_dim=[16, 16, 32], num_heads=[1, 2, 2], depth=[1, 2, 3])
other("dpt", "vision", "DPTForSemanticSegmentation", ("pixel_values",), pics, [{0: Dim.AUTO}], **{**VIT, "num_hidden_layers": 4}, is_hybrid=False, backbone_out_indices=[0, 1, 2, 3],
      neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, use_auxiliary_head=False)
other("glpn", "vision", "GLPNForDepthEstimation", ("pixel_values",), lambda: [(image(b, 64),) for b in (2, 3)], [{0: Dim.AUTO}], hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1],
      num_attention_heads=[1, 2, 2, 2], decoder_hidden_size=16)
other("bit", "vision", "BitModel", ("pixel_values",), pics, [{0: Dim.AUTO}], embedding_size=8, hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1], num_groups=2)
both = lambda: [(ids(99, b, t), image(b, 32)) for b, t in ((2, 8), (3, 6))]
clip = dict(text_config=dict(TOWER, vocab_size=99, max_position_embeddings=16, eos_token_id=2, bos_token_id=1, pad_token_id=0), vision_config=VIT, projection_dim=16)
for n, c in dict(clip="CLIPModel", siglip="SiglipModel", chinese_clip="ChineseCLIPModel", altclip="AltCLIPModel", blip="BlipModel", clipseg="CLIPSegModel").items():
    other(n, "multimodal", c, ("input_ids", "pixel_values"), both, [{0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}], **clip)
other("vilt", "multimodal", "ViltModel", ("input_ids", "pixel_values"), both, [{0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}], **VIT, vocab_size=99, max_position_embeddings=16, max_image_length=-1)


def plain(name, kind, make, cases, dynamic):
    ZOO["torch/" + name] = (kind, lambda: (make(), cases(), dynamic))


class Recurrent(torch.nn.Module):
    def __init__(self, cls, **kw):
        super().__init__()
        self.r, self.fc = getattr(torch.nn, cls)(8, 12, 2, batch_first=True, **kw), torch.nn.LazyLinear(4)
        self(torch.randn(1, 2, 8))

    def forward(self, x):
        return self.fc(self.r(x)[0])


for n in ("LSTM", "GRU", "RNN"):
    plain(n.lower(), "recurrent", lambda n=n: Recurrent(n), lambda: [(torch.randn(b, 9, 8),) for b in (2, 3)], [{0: Dim.AUTO}])
plain("bilstm", "recurrent", lambda: Recurrent("LSTM", bidirectional=True), lambda: [(torch.randn(b, 9, 8),) for b in (2, 3)], [{0: Dim.AUTO}])


class Encoder(torch.nn.Module):
    def __init__(self, cls):
        super().__init__()
        self.m = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2, enable_nested_tensor=False) if cls == "encoder" else torch.nn.Transformer(16, 2, 2, 2, 32, batch_first=True)
        self.two = cls != "encoder"

    def forward(self, x):
        return self.m(x, x) if self.two else self.m(x)


for n in ("encoder", "transformer"):
    plain(n, "text", lambda n=n: Encoder(n), lambda: [(torch.randn(b, t, 16),) for b, t in ((2, 7), (3, 5))], [{0: Dim.AUTO, 1: Dim.AUTO}])


def forget(m):
    """Empties what layers of timm keep of their biases while they do not train: a graph that is used up, or a tracer's values."""
    for part in m.modules():
        getattr(part, "attention_bias_cache", {}).clear()


def leaves(out):
    return [t.detach() for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]


def contents(m, cases, train):
    got = {}
    for k, args in enumerate(cases):
        for i, a in enumerate(args):
            got[f"{k}.in{i}"] = a.contiguous().clone()
        with torch.no_grad():
            for i, o in enumerate(leaves(copy.deepcopy(m)(*[a.clone() for a in args]))):
                got[f"{k}.out{i}"] = o.contiguous().clone()
    if train:
        try:  # what both are held against
            exact = gradients(copy.deepcopy(m).double(), [a.double() if a.is_floating_point() else a for a in cases[0]])
        except Exception:  # a model that makes f32 of its own
            exact = {}
        got |= {"grad." + n: g for n, g in gradients(m, cases[0]).items()} | {"exact." + n: g for n, g in exact.items()}
    return got


def gradients(m, args):
    """Those of the mean square of the first output after five steps of SGD."""
    opt = torch.optim.SGD(m.parameters(), lr=1e-2)
    for step in range(5):
        opt.zero_grad()
        forget(m)
        out = torch.utils._pytree.tree_leaves(m(*args))[0]
        (out if out.dtype == torch.float64 else out.float()).square().mean().backward()
        if step < 4:
            opt.step()
    return {n: p.grad.contiguous().clone() for n, p in m.named_parameters() if p.grad is not None}


def row(name, args):
    kind, make = ZOO[name]
    folder = tempfile.mkdtemp(prefix="zoo-")
    r = dict(name=name, kind=kind)
    try:
        torch.manual_seed(0)
        m, cases, dynamic = make()
        m = m.eval()
        with torch.no_grad():  # a token of zeros before a layer norm has gradients of any size
            for p in m.parameters():
                if not p.any():
                    p.normal_(std=0.02)
        if args.bf16:
            m = m.to(torch.bfloat16)
            cases = [tuple(a.to(torch.bfloat16) if a.is_floating_point() else a for a in c) for c in cases]
        spec = (tuple(dynamic),) if isinstance(m, Outputs) else tuple(dynamic)
        try:
            program = torch.export.export(m, cases[0], dynamic_shapes=spec, strict=False)
        except Exception as e:
            r["static"] = True
            try:
                program = torch.export.export(m, cases[0], strict=False)
            except Exception as e:
                r["error"] = "PyTorch does not export it: " + (str(e) or repr(e)).strip().split("\n")[0][:100]
                return r
            cases = cases[:1]
        torch.export.save(program, folder + "/model.pt2")
        forget(m)
        fixed = [{d for d, n in enumerate(node.meta["val"].shape) if str(n).isdigit()} for node in program.graph.nodes
                 if node.op == "placeholder" and not node.name.startswith(("p_", "b_", "c_"))]
        if len(cases) > 1 and any(cases[0][i].shape[d] != cases[1][i].shape[d] for i, f in enumerate(fixed) for d in f):
            r["batch"] = True  # the export fixed the length
            cases[1] = tuple(torch.cat([a, a[:1]]) for a in cases[0])
        tensors = contents(m, cases, args.train)
        save_file(tensors, folder + "/want.safetensors")
        del program, m
        p = subprocess.run([args.run, folder], capture_output=True, text=True, timeout=300)
        if p.returncode:
            r["error"] = (p.stdout + p.stderr).strip()[-1500:]
        else:
            r.update(json.loads(p.stdout))
    except Exception as e:
        r["error"] = "set up: " + traceback.format_exc().strip().split("\n")[-1][:200]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return r


def main():
    p = argparse.ArgumentParser()
    p.add_argument("run")
    p.add_argument("--only", default="")
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--train", action="store_true")
    p.add_argument("--out")
    args = p.parse_args()
    torch.set_num_threads(1)
    out = open(args.out, "a+") if args.out else sys.stdout
    if args.out:
        out.seek(0)
    done = {line.split("|")[1].strip() for line in out} if args.out else set()
    for name in ZOO:
        if name in done or not re.search(args.only, name):
            continue
        r = row(name, args)
        sizes = "fixed" if r.get("static") else "batch" if r.get("batch") else "vary"
        if "error" in r:
            print(f"| {name} | {r['kind']} | {sizes} | FAILED | {r['error']} |", file=out, flush=True)
        else:
            grad = f" {r['grad']:.1e} | {r['exact']:.1e} | {r['torch_exact']:.1e} |" if args.train else ""
            print(f"| {name} | {r['kind']} | {sizes} | {r['nodes']} | {r['error_of_outputs']:.1e} |{grad} {r['load']:.2f} | {r['first']:.2f} | {r['again'] * 1e3:.1f} |", file=out, flush=True)


main()
