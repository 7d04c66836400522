# SPDX-License-Identifier: Apache-2.0
"""Real architectures: from torchvision, timm and transformers, and those of own.py.

They are made from their configurations, without weights and network. A row has a name, its family
(a family is wholly in training or wholly held out), how to make the model, its inputs, and batch
sizes from small to large. Rows of a family share code, not only names.
"""
import importlib
from dataclasses import dataclass, field

import torch

SMALL, MIDDLE, LARGE, HUGE = (
    (16, 32, 64, 128, 256),
    (8, 16, 32, 64, 128),
    (4, 8, 16, 32, 64),
    (1, 2, 4, 8, 16),
)


@dataclass
class Architecture:
    name: str
    family: str
    source: str
    feed: str
    batches: tuple
    size: int = 224
    options: dict = field(default_factory=dict)
    config: str = ""
    classes: int = 1000

    @property
    def sequence_length(self):
        return self.size if self.feed in TOKENS else None


TOKENS = ("classify", "masked", "causal", "seq2seq", "tokens", "tags", "mamba")


def _vision(family, batches, *names, size=224, feed="image", **options):
    return [
        Architecture(name, family, "torchvision", feed, batches, size, options) for name in names
    ]


def _timm(family, batches, *names, size=224):
    return [Architecture(name, family, "timm", "image", batches, size) for name in names]


def _text(name, family, model, feed, size, batches, **options):
    return Architecture(name, family, "transformers", feed, batches, size, options, config=model)


def _own(name, family, make, feed, size, batches, classes=1000, **options):
    return Architecture(
        name, family, "own", feed, batches, size, options, config=make, classes=classes
    )


ARCHITECTURES = [
    # torchvision, classification
    *_vision("alexnet", (32, 64, 128, 256, 512), "alexnet"),
    *_vision("vgg", MIDDLE, "vgg11_bn", "vgg16", "vgg19"),
    *_vision("resnet", SMALL, "resnet18", "resnet34"),
    *_vision("resnet", MIDDLE, "resnet50", "resnet101", "resnet152"),
    *_vision("resnet", MIDDLE, "wide_resnet50_2", "resnext50_32x4d"),
    *_vision("densenet", MIDDLE, "densenet121", "densenet169"),
    *_vision("squeezenet", SMALL, "squeezenet1_0", "squeezenet1_1"),
    *_vision("inception", MIDDLE, "inception_v3", size=299, init_weights=False),
    *_vision("inception", SMALL, "googlenet", aux_logits=False, init_weights=False),
    *_vision("mobilenet", SMALL, "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large"),
    *_vision("mobilenet", SMALL, "mnasnet1_0"),
    *_vision("shufflenet", SMALL, "shufflenet_v2_x1_0"),
    *_vision("efficientnet", SMALL, "efficientnet_b0"),
    *_vision("efficientnet", MIDDLE, "efficientnet_b3", "efficientnet_v2_s"),
    *_vision("regnet", MIDDLE, "regnet_y_3_2gf", "regnet_x_8gf"),
    *_vision("convnext", MIDDLE, "convnext_tiny", "convnext_small"),
    *_vision("vit", MIDDLE, "vit_b_16"),
    *_vision("swin", MIDDLE, "swin_t", "swin_s", "swin_v2_t"),
    *_vision("maxvit", (8, 16, 32, 48, 64), "maxvit_t"),
    # torchvision, other tasks
    *_vision(
        "segmentation",
        (2, 4, 8, 16),
        "fcn_resnet50",
        "deeplabv3_resnet50",
        feed="segmentation",
        size=512,
        weights_backbone=None,
    ),
    *_vision(
        "segmentation",
        (4, 8, 16, 32, 64),
        "lraspp_mobilenet_v3_large",
        feed="segmentation",
        size=512,
        weights_backbone=None,
    ),
    *_vision("video", HUGE, "r3d_18", "mc3_18", "r2plus1d_18", feed="video", size=112),
    *_vision(
        "detector",
        HUGE,
        "fasterrcnn_resnet50_fpn",
        "retinanet_resnet50_fpn",
        feed="detection",
        size=640,
        weights_backbone=None,
    ),
    *_vision(
        "detector",
        (4, 8, 16, 32, 64),
        "ssdlite320_mobilenet_v3_large",
        feed="detection",
        size=320,
        weights_backbone=None,
    ),
    # timm
    *_timm("xception", MIDDLE, "legacy_xception", size=299),
    *_timm("res2net", MIDDLE, "res2net50_26w_4s"),
    *_timm("senet", MIDDLE, "seresnet50", "ecaresnet50d"),
    *_timm("dpn", MIDDLE, "dpn68"),
    *_timm("hrnet", MIDDLE, "hrnet_w18"),
    *_timm("dla", MIDDLE, "dla34"),
    *_timm("darknet", MIDDLE, "cspresnet50", "darknet53", size=256),
    *_timm("nfnet", MIDDLE, "nfnet_f0", "nf_resnet50"),
    *_timm("repvgg", MIDDLE, "repvgg_a2"),
    *_timm("ghostnet", SMALL, "ghostnet_100"),
    *_timm("mlp-mixer", MIDDLE, "mixer_b16_224", "resmlp_24_224", "gmlp_s16_224"),
    *_timm("vit", SMALL, "vit_small_patch16_224", "deit_small_patch16_224"),
    *_timm("vit", LARGE, "vit_large_patch16_224", "beit_base_patch16_224"),
    *_timm("cait", MIDDLE, "cait_xxs24_224"),
    *_timm("pvt", MIDDLE, "pvt_v2_b2"),
    *_timm("levit", SMALL, "levit_256"),
    *_timm("convmixer", MIDDLE, "convmixer_768_32"),
    *_timm("poolformer", MIDDLE, "poolformer_s24"),
    *_timm("coatnet", MIDDLE, "coatnet_0_rw_224"),
    *_timm("mobilevit", MIDDLE, "mobilevit_s", size=256),
    *_timm("xcit", MIDDLE, "xcit_small_12_p16_224"),
    *_timm("inception", MIDDLE, "inception_v4", size=299),
    # transformers
    _text("bert-base", "bert", "BertForSequenceClassification", "classify", 128, SMALL),
    _text("bert-base-mlm", "bert", "BertForMaskedLM", "masked", 512, LARGE),
    _text(
        "bert-large",
        "bert",
        "BertForSequenceClassification",
        "classify",
        256,
        LARGE,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
    ),
    _text(
        "roberta-base",
        "bert",
        "RobertaForMaskedLM",
        "masked",
        256,
        LARGE,
        max_position_embeddings=514,
    ),
    _text(
        "xlm-roberta-base",
        "bert",
        "XLMRobertaForSequenceClassification",
        "classify",
        128,
        MIDDLE,
        vocab_size=250002,
        max_position_embeddings=514,
    ),
    _text("electra-small", "electra", "ElectraForSequenceClassification", "classify", 256, SMALL),
    _text(
        "distilbert", "distilbert", "DistilBertForSequenceClassification", "classify", 256, SMALL
    ),
    _text(
        "albert-base",
        "albert",
        "AlbertForSequenceClassification",
        "classify",
        256,
        MIDDLE,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
    ),
    _text(
        "deberta-v2",
        "deberta",
        "DebertaV2ForSequenceClassification",
        "classify",
        128,
        MIDDLE,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
    ),
    _text("mpnet-base", "mpnet", "MPNetForSequenceClassification", "classify", 128, MIDDLE),
    _text(
        "xlnet-base",
        "xlnet",
        "XLNetForSequenceClassification",
        "classify",
        256,
        LARGE,
        d_model=768,
        n_layer=12,
        n_head=12,
        d_inner=3072,
    ),
    _text("fnet-base", "fnet", "FNetForSequenceClassification", "classify", 256, MIDDLE),
    _text("gpt2", "gpt2", "GPT2LMHeadModel", "causal", 512, HUGE),
    _text(
        "gpt2-medium",
        "gpt2",
        "GPT2LMHeadModel",
        "causal",
        512,
        HUGE,
        n_embd=1024,
        n_layer=24,
        n_head=16,
    ),
    _text(
        "gpt2-large",
        "gpt2",
        "GPT2LMHeadModel",
        "causal",
        256,
        (1, 2, 4, 8),
        n_embd=1280,
        n_layer=36,
        n_head=20,
    ),
    _text(
        "gpt-neo-125m",
        "gpt-neo",
        "GPTNeoForCausalLM",
        "causal",
        512,
        HUGE,
        hidden_size=768,
        num_layers=12,
        num_heads=12,
        attention_types=[[["global", "local"], 6]],
    ),
    _text(
        "pythia-160m",
        "gpt-neox",
        "GPTNeoXForCausalLM",
        "causal",
        512,
        HUGE,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        vocab_size=50304,
    ),
    _text("opt-125m", "opt", "OPTForCausalLM", "causal", 512, HUGE),
    _text(
        "bloom-560m",
        "bloom",
        "BloomForCausalLM",
        "causal",
        256,
        HUGE,
        hidden_size=1024,
        n_layer=24,
        n_head=16,
        vocab_size=250880,
    ),
    _text(
        "llama-160m",
        "llama",
        "LlamaForCausalLM",
        "causal",
        512,
        HUGE,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        vocab_size=32000,
    ),
    _text(
        "llama-1b",
        "llama",
        "LlamaForCausalLM",
        "causal",
        512,
        (1, 2, 4, 8),
        hidden_size=2048,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        intermediate_size=5632,
        vocab_size=32000,
    ),
    _text(
        "qwen2-0.5b",
        "llama",
        "Qwen2ForCausalLM",
        "causal",
        512,
        HUGE,
        hidden_size=896,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        intermediate_size=4864,
        vocab_size=151936,
        tie_word_embeddings=True,
    ),
    _text(
        "t5-small",
        "t5",
        "T5ForConditionalGeneration",
        "seq2seq",
        256,
        MIDDLE,
        decoder_start_token_id=0,
    ),
    _text(
        "t5-base",
        "t5",
        "T5ForConditionalGeneration",
        "seq2seq",
        256,
        LARGE,
        d_model=768,
        d_ff=3072,
        num_layers=12,
        num_heads=12,
        decoder_start_token_id=0,
    ),
    _text(
        "bart-base",
        "bart",
        "BartForConditionalGeneration",
        "seq2seq",
        256,
        LARGE,
        d_model=768,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
    ),
    _text("whisper-tiny", "whisper", "WhisperForConditionalGeneration", "speech", 64, MIDDLE),
    _text("wav2vec2-base", "wav2vec2", "Wav2Vec2ForSequenceClassification", "wave", 32000, MIDDLE),
    _text("clip-vit-b32", "clip", "CLIPModel", "clip", 224, MIDDLE),
    _text(
        "segformer-b0",
        "segformer",
        "SegformerForSemanticSegmentation",
        "pixels",
        512,
        LARGE,
        num_labels=150,
    ),
    _text("mamba-130m", "mamba", "MambaForCausalLM", "causal", 64, HUGE),
    # our own
    _own("unet", "unet", "UNet", "segments", 256, HUGE, classes=21),
    _own("unet-512", "unet", "UNet", "segments", 512, (1, 2, 4, 8), classes=21),
    _own("unet-small", "unet", "UNet", "segments", 256, LARGE, classes=21, width=32, bilinear=True),
    _own("lstm-lm", "rnn", "LanguageRnn", "tokens", 35, SMALL, classes=33278),
    _own("lstm-lm-large", "rnn", "LanguageRnn", "tokens", 128, MIDDLE, classes=33278, width=1500),
    _own("gru-lm", "rnn", "LanguageRnn", "tokens", 70, MIDDLE, classes=33278, kind="GRU"),
    _own("bilstm-tagger", "rnn", "Tagger", "tags", 128, SMALL, classes=50),
    _own("dlrm", "dlrm", "Recommender", "clicks", 26, (512, 2048, 8192, 32768)),
    _own(
        "dlrm-large",
        "dlrm",
        "Recommender",
        "clicks",
        26,
        (512, 2048, 8192, 32768),
        rows=400_000,
        width=64,
    ),
    _own("ncf", "ncf", "Factorization", "pairs", 0, (1024, 8192, 65536, 262144)),
    _own("autoencoder", "autoencoder", "Autoencoder", "reconstruct", 128, SMALL),
    _own(
        "autoencoder-256",
        "autoencoder",
        "Autoencoder",
        "reconstruct",
        256,
        MIDDLE,
        width=96,
        levels=5,
    ),
    _own("audio-m5", "audio-conv", "AudioConv", "waves", 16000, SMALL, classes=35),
    _own("tcn", "tcn", "TemporalConv", "series", 512, SMALL, classes=10),
    _own("pointnet", "pointnet", "PointNet", "points", 1024, MIDDLE, classes=40),
    _own(
        "tabular-resnet",
        "tabular",
        "TabularResNet",
        "table",
        200,
        (128, 512, 2048, 8192),
        classes=10,
    ),
    _own(
        "tabular-resnet-wide",
        "tabular",
        "TabularResNet",
        "table",
        200,
        (128, 512, 2048, 8192),
        classes=10,
        width=2048,
        blocks=12,
    ),
]
BY_NAME = {row.name: row for row in ARCHITECTURES}

_VISION_PARTS = {"segmentation": "segmentation", "video": "video", "detection": "detection"}


def _make_torchvision(row):
    part = _VISION_PARTS.get(row.feed)
    module = importlib.import_module("torchvision.models" + (f".{part}" if part else ""))
    return getattr(module, row.name)(weights=None, **row.options)


def _make_timm(row):
    import timm

    return timm.create_model(row.name, pretrained=False, num_classes=1000)


def _config_of(row):
    import transformers

    model = getattr(transformers, row.config)
    return model, model.config_class(**row.options)


def _make_transformers(row):
    model, config = _config_of(row)
    if row.feed == "causal":
        config.use_cache = False
    return model(config)


def _make_own(row):
    from . import own

    options = dict(row.options)
    if row.config in ("UNet", "AudioConv", "TemporalConv", "PointNet", "TabularResNet"):
        options["classes"] = row.classes
    return getattr(own, row.config)(**options)


MAKE = {
    "torchvision": _make_torchvision,
    "timm": _make_timm,
    "transformers": _make_transformers,
    "own": _make_own,
}


def _images(n, size):
    return torch.randn(n, 3, size, size)


def _tokens(row, n, size=None):
    vocabulary = row.classes if row.source == "own" else _config_of(row)[1].vocab_size
    return torch.randint(5, vocabulary, (n, size or row.size))


def _detection(row, n):
    boxes = torch.tensor(
        [[20.0, 30.0, 200.0, 220.0], [50.0, 60.0, 300.0, 280.0], [10.0, 100.0, 120.0, 310.0]]
    )
    targets = [{"boxes": boxes.clone(), "labels": torch.tensor([1, 2, 3])} for _ in range(n)]
    return ([torch.rand(3, row.size, row.size) for _ in range(n)], targets), None


def _segments(row, n):
    classes = 21 if row.source == "torchvision" else row.classes
    return (_images(n, row.size),), torch.randint(0, classes, (n, row.size, row.size))


def _clip(row, n):
    return {
        "input_ids": torch.randint(5, 49000, (n, 77)),
        "pixel_values": _images(n, 224),
        "return_loss": True,
    }, None


def _classes(row, n):
    return torch.randint(0, row.classes, (n,))


FEED = {
    "image": lambda row, n: ((_images(n, row.size),), _classes(row, n)),
    "video": lambda row, n: (
        (torch.randn(n, 3, 16, row.size, row.size),),
        torch.randint(0, 400, (n,)),
    ),
    "segmentation": _segments,
    "segments": _segments,
    "detection": _detection,
    "classify": lambda row, n: (
        {"input_ids": _tokens(row, n), "labels": torch.randint(0, 2, (n,))},
        None,
    ),
    "masked": lambda row, n: ({"input_ids": _tokens(row, n), "labels": _tokens(row, n)}, None),
    "causal": lambda row, n: ({"input_ids": _tokens(row, n), "labels": _tokens(row, n)}, None),
    "seq2seq": lambda row, n: (
        {"input_ids": _tokens(row, n), "labels": _tokens(row, n, row.size // 2)},
        None,
    ),
    "speech": lambda row, n: (
        {"input_features": torch.randn(n, 80, 3000), "labels": _tokens(row, n)},
        None,
    ),
    "wave": lambda row, n: (
        {"input_values": torch.randn(n, row.size), "labels": torch.randint(0, 2, (n,))},
        None,
    ),
    "clip": _clip,
    "pixels": lambda row, n: (
        {
            "pixel_values": _images(n, row.size),
            "labels": torch.randint(0, 150, (n, row.size, row.size)),
        },
        None,
    ),
    "tokens": lambda row, n: ((_tokens(row, n),), _tokens(row, n)),
    "tags": lambda row, n: (
        (torch.randint(0, 50000, (n, row.size)),),
        torch.randint(0, row.classes, (n, row.size)),
    ),
    "clicks": lambda row, n: (
        (torch.randn(n, 13), torch.randint(0, 100_000, (n, row.size))),
        torch.rand(n, 1),
    ),
    "pairs": lambda row, n: (
        (torch.randint(0, 138_000, (n,)), torch.randint(0, 27_000, (n,))),
        torch.rand(n, 1),
    ),
    "reconstruct": lambda row, n: ((_images(n, row.size),), torch.rand(n, 3, row.size, row.size)),
    "waves": lambda row, n: ((torch.randn(n, 1, row.size),), _classes(row, n)),
    "series": lambda row, n: ((torch.randn(n, 32, row.size),), _classes(row, n)),
    "points": lambda row, n: ((torch.randn(n, 3, row.size),), _classes(row, n)),
    "table": lambda row, n: ((torch.randn(n, row.size),), _classes(row, n)),
}


def _sum_of_losses(output, target):
    return sum(output.values()), "own"


def make_model(row):
    return MAKE[row.source](row)


def make_batch(row, n):
    return FEED[row.feed](row, n)


def loss_of(row):
    """The loss function of a model; None for the default."""
    return _sum_of_losses if row.feed == "detection" else None
