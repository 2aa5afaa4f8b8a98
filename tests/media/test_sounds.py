"""Sounds: the results for readable ones, and the errors for all others."""

import numpy as np
import pytest

from lmwire_protocol import Media
from lmwire_worker.media import MediaPolicy, Sound
from support.media.reading_media import TONES, in_base64, read_sound, refusal, wav


def tone(seconds: float = 0.5, rate: int = 16_000) -> "np.ndarray":
    return 0.5 * np.sin(2 * np.pi * 440 * np.arange(int(seconds * rate)) / rate)


def pitch(sound: Sound) -> float:
    """In Hz: of what is loudest."""
    spectrum = np.abs(np.fft.rfft(sound.samples))
    return float(np.argmax(spectrum) * sound.rate / len(sound.samples))


@pytest.mark.parametrize("format", ["wav", "mp3", "flac", "ogg"])
def test_the_common_formats_are_read(format: str) -> None:
    content = wav(tone()) if format == "wav" else (TONES / f"tone.{format}").read_bytes()
    sound = read_sound(content)
    assert sound.rate == 16_000
    assert 8_000 <= len(sound.samples) < 11_000  # MP3 adds silence
    assert pitch(sound) == pytest.approx(440, abs=3)
    assert np.abs(sound.samples).max() == pytest.approx(0.5, abs=0.05)


def test_channels_become_one() -> None:
    left, right = np.full(100, 0.5), np.full(100, -0.25)
    sound = read_sound(wav(np.stack([left, right], axis=1), channels=2))
    assert sound.samples == pytest.approx(np.full(100, 0.125), abs=1e-3)


def test_a_sound_keeps_its_rate() -> None:
    sound = read_sound(wav(tone(rate=44_100), rate=44_100))
    assert (sound.rate, len(sound.samples)) == (44_100, 22_050)


@pytest.mark.parametrize("format", ["wav", "mp3", "flac"])
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
        (b"\0\0\0\x20ftypM4A ", "send WAV, MP3, FLAC or Ogg Vorbis"),
        (b"OggS\0\2" + bytes(20) + b"\1\x13OpusHead\1\1", "is a damaged sound"),
        (b"\xff\xf1\x50\x80AAC", "is not a supported sound"),
        (b"\xff", "is not a supported sound"),
        (b"just text", "is not a supported sound"),
    ],
    ids=[
        "truncated wav",
        "no samples",
        "a rate too low",
        "truncated flac",
        "truncated ogg",
        "mp3 without sound",
        "m4a",
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
