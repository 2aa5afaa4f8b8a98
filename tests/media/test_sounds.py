"""Sounds: the results for readable ones, and the errors for all others."""

import io
import sys

import av
import numpy as np
import pytest

from lmwire_protocol import Media
from lmwire_worker.media import MediaPolicy, Sound, decoder_process
from lmwire_worker.media.decoder_process import DecoderProcess, Question, no_data
from lmwire_worker.media.media_error import MediaError
from lmwire_worker.media_decoder import sounds
from lmwire_worker.media_decoder.pipes import MissingLibraryError
from support.media.reading_media import TONES, in_base64, read_sound, refusal, wav

pytestmark = pytest.mark.slow


def tone(seconds: float = 0.5, rate: int = 16_000) -> "np.ndarray":
    return 0.5 * np.sin(2 * np.pi * 440 * np.arange(int(seconds * rate)) / rate)


def pitch(sound: Sound) -> float:
    """In Hz: of what is loudest."""
    spectrum = np.abs(np.fft.rfft(sound.samples))
    return float(np.argmax(spectrum) * sound.rate / len(sound.samples))


@pytest.mark.parametrize("format", ["wav", "mp3", "flac", "ogg", "m4a", "aac"])
def test_the_common_formats_are_read(format: str) -> None:
    content = wav(tone()) if format == "wav" else (TONES / f"tone.{format}").read_bytes()
    sound = read_sound(content)
    assert sound.rate == 16_000
    assert 8_000 <= len(sound.samples) < 11_000  # MP3 and AAC add silence
    assert pitch(sound) == pytest.approx(440, abs=3)
    assert np.abs(sound.samples).max() == pytest.approx(0.5, abs=0.05)


def test_channels_become_one() -> None:
    left, right = np.full(100, 0.5), np.full(100, -0.25)
    sound = read_sound(wav(np.stack([left, right], axis=1), channels=2))
    assert sound.samples == pytest.approx(np.full(100, 0.125), abs=1e-3)


def test_a_sound_keeps_its_rate() -> None:
    sound = read_sound(wav(tone(rate=44_100), rate=44_100))
    assert (sound.rate, len(sound.samples)) == (44_100, 22_050)


@pytest.mark.parametrize("format", ["wav", "mp3", "flac", "aac"])
def test_a_recording_that_breaks_off_is_read_as_far_as_it_goes(format: str) -> None:
    whole = wav(tone()) if format == "wav" else (TONES / f"tone.{format}").read_bytes()
    assert 2_000 < len(read_sound(whole[: len(whole) * 2 // 3]).samples) < 8_000


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (wav(tone())[:30], "is a damaged sound"),
        (wav([]), "is a sound without samples"),
        (wav(tone(), rate=100), "has 100 samples a second; 8,000 to 384,000 are read"),
        ((TONES / "tone.flac").read_bytes()[:30], "is a damaged sound"),
        ((TONES / "tone.ogg").read_bytes()[:40], "is a damaged sound"),
        (b"ID3 and nothing else", "is a damaged sound"),
        (b"\0\0\0\x20ftypM4A ", "is a damaged sound"),
        ((TONES / "tone.m4a").read_bytes()[:3000], "is a damaged sound"),  # its index is at the end
        (b"OggS\0\2" + bytes(20) + b"\1\x13OpusHead\1\1", "is a damaged sound"),
        (b"\xff\xf1\x50\x80AAC", "is a damaged sound"),
        (b"\xff", "send WAV, MP3, FLAC, Ogg Vorbis, M4A or AAC"),
        (b"just text", "is not a supported sound"),
    ],
    ids=[
        "truncated wav",
        "no samples",
        "a rate too low",
        "truncated flac",
        "truncated ogg",
        "mp3 without sound",
        "m4a without sound",
        "truncated m4a",
        "ogg opus",
        "aac",
        "one byte",
        "text",
    ],
)
def test_what_is_no_sound_that_can_be_read_is_refused(content: bytes, problem: str) -> None:
    refused = refusal("sound", Media(data=in_base64(content)))
    assert problem in refused.message
    assert (refused.code, refused.retryable) == ("invalid_request", False)


def test_samples_that_are_no_numbers_are_refused() -> None:
    content = bytearray(wav(np.zeros(100)))
    content[20:22], content[28:36] = (3).to_bytes(2, "little"), (64_000).to_bytes(4, "little") + b"\4\0\x20\0"
    content[44:] = np.full(50, np.nan, "<f4").tobytes()
    assert "holds samples that are not numbers" in refusal("sound", Media(data=in_base64(bytes(content)))).message


def test_no_more_is_decoded_than_is_allowed() -> None:
    content = (TONES / "tone.flac").read_bytes()
    assert len(read_sound(content, max_samples=8_000).samples) == 8_000
    problem = "has more than 7,999 samples"
    assert problem in refusal("sound", Media(data=in_base64(content)), MediaPolicy(max_samples=7_999)).message


def encoded(codec: str, samples: "np.ndarray") -> bytes:
    """Return an MP4 file with samples, [channels, n]."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as output:
        stream = output.add_stream(codec, rate=16_000)
        assert isinstance(stream, av.AudioStream)
        stream.layout = "stereo" if len(samples) == 2 else "mono"
        for start in range(0, samples.shape[1], 1024):
            part = np.ascontiguousarray(samples[:, start : start + 1024], np.float32)
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout=stream.layout.name)
            frame.sample_rate = 16_000
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def test_an_m4a_may_hold_alac_and_its_channels_become_one() -> None:
    left, right = np.full(2048, 0.5), np.full(2048, -0.25)
    assert read_sound(encoded("alac", np.stack([left, right]))).samples == pytest.approx(np.full(2048, 0.125), abs=1e-3)


def test_an_mp4_with_another_codec_is_refused() -> None:
    refused = refusal("sound", Media(data=in_base64(encoded("libmp3lame", np.zeros((1, 4096))))))
    assert "another format than AAC or ALAC" in refused.message


def test_no_more_aac_is_decoded_than_is_allowed() -> None:
    content = (TONES / "tone.m4a").read_bytes()
    refused = refusal("sound", Media(data=in_base64(content)), MediaPolicy(max_samples=2_000))
    assert "has more than 2,000 samples" in refused.message


def test_without_its_library_aac_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("av", "av.error"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibraryError) as missing:
        sounds.decode((TONES / "tone.aac").read_bytes(), 100_000, lambda data: None)
    error = missing.value
    answer = {"missing": [error.library, error.extra, error.purpose]}
    monkeypatch.setattr(decoder_process, "_receive", lambda process, buffer: answer)
    process = DecoderProcess()
    with pytest.raises(MediaError, match=r"pip install 'lmwire\[aac\]'") as refused:
        process.ask(Question({"subject": "inspect", "kind": "sound", "samples": 1}, 60, 0), b"", no_data)
    assert refused.value.code == "unsupported"
    process.close()
    assert sounds.inspect((TONES / "tone.flac").read_bytes(), 100_000)["samples"] == 8_000
