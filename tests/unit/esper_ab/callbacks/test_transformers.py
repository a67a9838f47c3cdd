"""The callback with the library, if it is installed: what a Trainer of a tiny model leaves."""

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="needs transformers")
pytest.importorskip("accelerate", reason="needs accelerate, as a Trainer does")


@pytest.mark.filterwarnings("ignore")  # of the library
def test_the_result_has_the_last_value_of_each_logged_number(tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    from esper_ab.callbacks.transformers import WriteLogs

    config = BertConfig(vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    rows = [{"input_ids": torch.tensor([1, number % 8]), "labels": number % 2} for number in range(8)]
    writer = WriteLogs(tmp_path / "out")
    (tmp_path / "out").mkdir()
    arguments = TrainingArguments(
        str(tmp_path / "trainer"), max_steps=4, eval_strategy="steps", eval_steps=2, logging_steps=2, report_to=[],
        use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    Trainer(model, arguments, train_dataset=rows, eval_dataset=rows, callbacks=[writer]).train()
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert len(writer.curves["eval_loss"]) == 2
    assert result["eval_loss"] == writer.curves["eval_loss"][-1]
    assert result["loss"] == writer.curves["loss"][-1]
