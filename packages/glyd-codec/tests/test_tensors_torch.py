# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Tensors of PyTorch files in frames: read singly, never by running their pickles, refused when broken."""

from __future__ import annotations

import base64
import contextlib
import io
import os
import pickle
import random
import struct
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glyd

try:
    import numpy as np
except ModuleNotFoundError:  # what needs it is skipped, and says so
    np = None
with_numpy = pytest.mark.skipif(np is None, reason="numpy is not installed")

# torch.save of torch 2.13, zlib, base85: a dictionary of many kinds of tensors, and a torch.nn.Linear
ALL = (
    "c-pO3>vI!T6yLOI+HPBg7E1wnC<>`SNt#C!c_d9SRhLJ*ydqlSCfO#DG@FyXX#tG}vE`vCC<3D6@P+a55BO340CWasbY#X+96vD5"
    "IK%i!J~&hFW1HShUzW1dWSivv9_O5U&q?~EYO5gB)d^FsMxj+uGMUW@1t}f5BbjihSvWN1DpeIhut#bzU`R`-8L-6TS|+2$QCiFD"
    ";+}j$&8vwW={ORhs$GU^d&Gv<j;QHm3V}6_w0u0(5iOu}Mi--bHC9Mx5>cdPbuAwq?i8WMZjaPrgpOA#Nfm4iB8D@Xg7&gEMW~Hf"
    "@EQlyMXK>Vo-07TWJ4hKOM+A-RgXb~R4rM?pz%zKxM)J~hzyTLaOgrTt>~~Qg>_Q46ytHi;#9p<g`k<@N1;WsjKUIzeGEaX3`+||"
    "Xp7Y2#nB-ZDI`g-jDEg6Lb3-ditso!KCI?-oC{bfS#({GQGpRy#RQFDLNpquw;a!Ex~vn{U>}VLo*+J|CF>YGDOpJzYnhj)5Iilz"
    "IvNK`s|i@2T1PXG*G9l@#I!nPu(bDMuyqukA<=AL3>y(_lA(jjA=qq6g9{ufnnov+uNs3+$wIQ}VqiA{j|^VAI0s!b6f>vf6`UhA"
    "FM`j+?*>0h^Rq^pw-94n8TU2>+hquxrZ0l0pj(CzMWvy~l)If;Hd)Tw4!Xnx&tYN<f-oj-Z)b$P2%eYWg-8`%FzAC9=h%8K5u{0#"
    "4rBX?`?Kg+PEC{rcTzzw>|&AZHX_+WBI#qo{f5y&Qe$6Kbq~1)vm(d{_R6r2maE|O!u}N1OEJbSIDi?g2o4&I5yJQqV?1Oq7SdU~"
    "X+(G#!7DNh&~1>_vML-l<=F>O%!SMQD&Z1H0Tp%}VvH}2AR&WF7sp}Hl-?d~D3?)>nvYwOF7-o-r8!M_vAx&G(-Fp*K`<mkmWHS0"
    "5NJinu|A<A1*rf<$V);IbUU@JBQ*!8Y?~Cx>3{;`ALhz9g5anO$EblJI6eTco9(8QeA(t3jK>K@R-HGET)stomKfg&1aHf5QYq-P"
    "F(va_A*aJT129^IF*_y5<l$6rpf9%T*56<KOGAj^Bd^2h-oRfs$n|}1;NCw!+-^O!VGPbt8oK9oI6DCEN`g{Q3N%P1pVZ;KIKJV}"
    "byeJr&xM{-;@IlB_7m`a5k9cfz>dOs$wL1-1{choLenzk_&#Lub;3t1PZy0kd`zA$vG^_{xFW+Rg%~xi=CpVUu1eLkF0phHK0RAM"
    "(eZ;+aS%T14cuq%6gv8(+Pc!78{>B{nmqbuoEI&^YC11E2DSW<f}%#>3x`%rGd9YXlL&ls@0XKAnmlF}Xce|F0pl!2l}tLB9a6I>"
    "9O{})W46odCI$i{@Fz)S)vN}ZgdS=jb_}T+8EoND;6ZgKu1p%Cj7mI=Zu?^y**dmaJ%~c6Je4;)!lCU8G{9I(0aAYahaV;UxE3Ui"
    "mY%<Rp$&h~Hisj}q$6iIv{9I+KGFV`=&e0`ZY2?@n?o-+sn;0}Z50+4KaM>Z43>h|g5L%21cmNJ-D|oX-NcV{x$WRQ<99tk{0}q#"
    "?)mEz?NWf~o$t5(IM4ih7MlNBgO%v#e!8p8Q{TH#eIL#A#d}xR%zgevd^XF<UExp_R<;P^<Ah=C>tENC7H=&x2-7lHCmDR<(Clh$"
    "lWYCq&=O(h`Uy0O;p>5px%1b658UK=#Vuruu%Po3q}pe0{{DqI{^_-QIBn-c=$~xoj5puzp1XbxLJg;mTZctBWFhbsztvoyd;T;S"
    "<u4C5Qh%372yT9!+&{Pea>2_67&V})`81wj#})ERDVk1%L!A$h42Re6aJl^szrV}pa=P8FE|0_E?(+COZjaOFa`?R-htu!(6PKRF"
    "eb?;Rhn>2#5VK{U{ETm$;++2-Sc&9^cZ&(-unE(BBd8?chi|Ki;KBsKl!;%-!4J<S6GwBcU>@3)P`=BGCg`PFft$6JIDT50arQb6"
    "=d8r>Q^kzC!s9yszfXHThjUfp_^xioeaYk8l{mf|n{jO-hx1h8_+DBOACL1^;`k0~#x*x^xULD@^!=5;_VGAhr5@ic&A1Ye^H<{d"
    "PS;?<{mkQ>Q#K6Wq|Cs5jXZG5j^W#r8F<SCoU&#3wqyn_ZW8!jRte-g#c~r+Hh|Ojus+FV+i0v@RlSM(ZD771u(JF8ritlqqhADe"
    "H?!BQ5!culriHF&YySgLj2eC"
)
MODULE = (
    "c-o~_TXWk)6qfD8cGSd98=59*6E5ZAK;ua9B{oe-Y8bzWfz%Al4l^KRNwzdmq#S8gQ<%(zVbaS3Gw=sG{0eyFH^4J*eE?qI2k^q~"
    "$`?tF(`nhUyw;xYJKxzo=WMbsrKUJ8o8`tvo?GA!9nH7&O-;c{@#w&6HuBu3(Q%SgvE!;n(YA{L+ACV7tt&47elP*I{tYCKAz46F"
    "1-puAn|2pc577nkE*~kba;Rh7^<e54rVA)dR(rbHH87<6&Sf8)mdDGk-u6vP8*zBZOn_kB_8eEfyTwDcP(T^t)FVixtHVq{;hUDD"
    ";E#eu9(a@>7y&Mz6q(f{A7-UAhPgWuCncrSeaJ~EDRCe2k5tvMEM3K>V|)CEuBN-X_MWL?9_H6ua1q0$7A!n8=*tTa;BpHV5jkV7"
    "Z7LpIF){{;$Cxn!JrS0SSt*HOndzLuij+8otB)A_8iv&ttOc%Kd;l-C;ANkkqTKd79eQN19K&^Vm9E&1Egz93(<58Q1Ay%57+zIn"
    "nVt$ZZCU2Y3J<S+2CtvO8!afH1?Ept4|<AAj@H#>!*LEgSZA_tqI|?2*xq8c8)%W*Oi%9kmKDXo#s?@ztsTb=5sQqtiB`r;a?iwu"
    "OdWJR5Ex8E*T!Lr)l=?yvZ|0AXt2eAC3Gna9POdZ%oVhDra2;6WzcPOkwQJJU|rToQu~f-%vwj6W7d(>+YE6t*cquT?QGZ%gWU>p"
    "HU@LNf#5p~w;N=;-&wGC47XX=kVJNL1^X^pY)C0IOV%78j~3sRl773mFJ-dn`P{#cNlDXZe`2>Ua%+QbFOqXQRIq%P7L#K)8!Pdq"
    "4-Jt@{QS@F-_l~H&t!>Zt~QkDw<1ZV*|iTzy*3-=b5tgeYMBPG+k?N7L?U@^0Q215Ab|EgtUI)Gn~k04(j5%T#Mshl45zoAEYqti"
    "eQpeM+-~?*-4vRQoBt<(!0X8_`Pw5N@|=+8$2}U+mGA%fVTl-)o)XbUBqFidSm&NapKAX?^{#*Z-6|Exo~xJRb_ROG3adT$5tMkU"
    "{OjZH$4}4yDpwj7Als^^yC$i?uM~Qf%cj<BY(8rsLZvE-Lank@s*3gMwouusm&NU}Ae8E*O1)Ao)r6`b)+;p1pAuj63M7sKi!woj"
    "9mW~%()?KDvA@G{a=8B%BgDT`+=RA{`v|wta>U1-DQ<G##@&RwU_RpJw~?D+_r=-aik*wFKbhvDeG{jKi!Vz3Ge#BT)Nu9WB2@an"
    "NVHbt+;C1;qx&6k&#tz8DV@I22d||zhQw@aP9=l+%S<p69{ct6Oz<Auy3^@^lV$h-`yWexZ8Z"
)


def unpacked(text):
    return zlib.decompress(base64.b85decode(text))


def opened(data, framework="bytes", **options):
    return glyd.open_tensors(io.BytesIO(data), framework, **options)


# --- pickles by hand ---------------------------------------------------------


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value):
    raw = value.to_bytes(9, "little", signed=True)
    return b"\x8a\x09" + raw


def name_of(module, name):
    return b"c%s\n%s\n" % (module.encode(), name.encode())


def several(*parts):
    return b"(" + b"".join(parts) + b"t"


def numbers(values):
    return several(*map(number, values))


def storage(key, kind="FloatStorage", n=100):
    return several(text("storage"), name_of("torch", kind), text(key), text("cpu"), number(n)) + b"Q"


def tensor(key="0", shape=(2, 3), strides=(3, 1), offset=0, kind="FloatStorage"):
    args = several(storage(key, kind), number(offset), numbers(shape), numbers(strides), b"\x89", b"}")
    return name_of("torch._utils", "_rebuild_tensor_v2") + args + b"R"


def mapping(items):
    return b"}(" + b"".join(text(key) + value for key, value in items.items()) + b"u"


def archive(root, storages=None, *, folder="m", method=zipfile.ZIP_STORED, more=()):
    """Return a file as torch.save lays it out; root is the pickle without its start and end."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        made.writestr(f"{folder}/data.pkl", b"\x80\x02" + root + b".")
        made.writestr(f"{folder}/byteorder", b"little")
        for key, data in (storages if storages is not None else {"0": bytes(400)}).items():
            made.writestr(f"{folder}/data/{key}", data)
        for path, data in more:
            made.writestr(path, data)
    return out.getvalue()


# --- what is read ---------------------------------------------------------------


def test_a_file_of_torch():
    content = unpacked(ALL)
    for packed in (content, glyd.compress(content), glyd.compress(content, segment_size=1 << 10)):
        with opened(packed) as file:
            assert file.offset_keys() == [
                "model.weight", "model.bias", "w", "tied", "row", "t", "p", "i", "f8", "u16", "none", "c",
                "opt.state.0.step", "opt.state.0.m.0", "args.y",
            ]  # fmt: skip
            assert file.metadata() is None
            assert file.get_tensor("model.bias") == struct.pack("<2f", 0.5, -0.5)
            assert file.get_tensor("w") == file.get_tensor("tied")
            assert file.get_tensor("row") == file.get_tensor("w")[8:16] == file.get_slice("w")[1]
            assert file.get_tensor("i") == struct.pack("<q", 7)
            assert file.get_tensor("none") == b""
            assert (file.get_slice("none").get_dtype(), file.get_slice("none").get_shape()) == ("F32", [0, 3])
            kinds = [file.get_slice(name).get_dtype() for name in ("w", "f8", "u16", "c", "opt.state.0.m.0", "args.y")]
            assert kinds == ["BF16", "F8_E4M3", "U16", "C64", "I8", "BOOL"]
            with pytest.raises(glyd.ParameterError, match="strides"):
                file.get_tensor("t")
    with opened(unpacked(MODULE)) as file:
        assert file.keys() == ["bias", "weight"]


@with_numpy
def test_a_file_of_torch_as_arrays(tmp_path):
    path = tmp_path / "m.pt.glyd"
    path.write_bytes(glyd.compress(unpacked(ALL)))
    with glyd.open_tensors(path) as file:
        assert file.get_tensor("t").tolist() == [[0, 3], [1, 4], [2, 5]]
        assert file.get_slice("t")[1:].tolist() == [[1, 4], [2, 5]]
        assert file.get_slice("t")[2, 1] == 5
        assert file.get_tensor("u16").tolist() == [1, 65535]
        assert file.get_tensor("c").tolist() == [1 + 2j]
    assert glyd.load_file(io.BytesIO(unpacked(MODULE)))["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_whatever_torch_saves(tmp_path):
    torch = pytest.importorskip("torch")
    whole = torch.randn(7, 6, 5)
    saved = {"a": whole, "b": whole[2:4], "c": whole[:, ::2], "d": whole.permute(2, 0, 1), "e": torch.randn(3).half()}
    for protocol in (2, 3, 4, 5):
        torch.save({"x": [saved]}, tmp_path / "m.pt", pickle_protocol=protocol)
        loaded = glyd.load_file(tmp_path / "m.pt", "torch")
        assert {name.rpartition(".")[2] for name in loaded} == set(saved)
        assert all(torch.equal(loaded[f"x.0.{name}"], saved[name]) for name in saved)
    torch.save(whole, tmp_path / "m.pt")
    assert torch.equal(glyd.load_file(tmp_path / "m.pt", "torch")["tensor"], whole)
    torch.save(saved, tmp_path / "m.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(glyd.FormatError, match="before its version"):
        glyd.open_tensors(tmp_path / "m.pt")


def test_one_storage_is_read_without_the_rest(tools, monkeypatch):
    """Of 40 storages the directory, the pickle and the segments of one are decoded."""
    storages = {str(i): tools.make_bf16(50_000, seed=i) for i in range(40)}
    root = mapping({f"t{i}": tensor(str(i), (500, 100), (100, 1), 0, "BFloat16Storage") for i in range(40)})
    packed = glyd.compress(archive(root, storages), segment_size=1 << 14)
    decoded = []
    from glyd_codec import _reader

    run = _reader.decode_run

    def counted(source, index, first, last, out, **options):
        decoded.extend(range(first, last))
        run(source, index, first, last, out, **options)

    monkeypatch.setattr(_reader, "decode_run", counted)
    with opened(packed) as file:
        assert 0 < len(decoded) <= 6
        decoded.clear()
        assert file.get_tensor("t17") == storages["17"]
        assert 6 <= len(decoded) <= 10
        decoded.clear()
        assert file.get_slice("t31")[100:102] == storages["31"][20_000:20_400]
        assert len(decoded) <= 3


# --- what is refused ---------------------------------------------------------------


class Evil:
    def __init__(self, call, *args):
        self.what = (call, args)

    def __reduce__(self):
        return self.what


def test_nothing_of_a_pickle_is_run(tmp_path):
    made = tmp_path / "made"
    for call, args in ((os.mkdir, (str(made),)), (eval, (f"open({str(made)!r}, 'w')",)), (exec, ("1/0",))):
        for protocol in range(6):
            evil = pickle.dumps({"a": Evil(call, *args)}, protocol)[:-1]
            data = archive(evil.removeprefix(b"\x80\x02") if protocol == 2 else evil)
            with opened(data) as file:
                assert file.keys() == []
            assert not made.exists()
    harmless = archive(mapping({"w": tensor(), "e": name_of("os", "system") + several(text("exit 1")) + b"R"}))
    with opened(harmless) as file:
        assert file.keys() == ["w"]


@pytest.mark.parametrize(
    ("root", "why"),
    [
        (b"", "pickle"),
        (b"(", "pickle"),
        (b"t", "pickle"),
        (b"0", "pickle"),
        (b"R", "pickle"),
        (b"j\xff\xff\xff\xff", "pickle"),
        (b"}]s", "pickle"),
        (b"Na", "pickle"),
        (b"NQ", "pickle"),
        (text("x") + b"Q", "pickle"),
        (b"\x82\x01", "EXT1"),
        (b"Pkey\n", "PERSID"),
        (tensor("1"), "not there"),
        (tensor(shape=(101,), strides=(1,)), "ends at byte 404"),
        (tensor(shape=(2, 2), strides=(99, 2)), "ends at byte 408"),
        (tensor(offset=95), "ends at byte 404"),
        (tensor(offset=-1), "pickle"),
        (tensor(shape=(-2, 3)), "pickle"),
        (tensor(shape=(2,)), "pickle"),
        (tensor(shape=(1 << 40, 2), strides=(0, 0)), "upon each other"),
        (tensor(shape=(1 << 40, 1 << 40), strides=(0, 1)), "pickle"),
        (tensor(shape=(1,) * 65, strides=(1,) * 65), "pickle"),
        (b"}(" + text("a") + b"}(" + text("b") + tensor() + b"u" + text("a.b") + tensor() + b"u", "twice"),
        (b"]q\x00h\x00a", "itself"),
        (b"]q\x00" + b"(h\x00h\x00lq\x00" * 200 + tensor() + b"a", "itself"),
    ],
    ids=range(25),
)
def test_pickles_that_are_refused(root, why):
    for data in (archive(root), glyd.compress(archive(root))):
        with pytest.raises(glyd.FormatError, match=why):
            opened(data)


def test_deep_and_odd_pickles_are_read():
    deep = b"N" + b"\x85" * 300_000  # tuples in tuples
    with pytest.raises(glyd.FormatError, match="itself"):
        opened(archive(b"}(" + text("deep") + deep + text("w") + tensor() + b"u"))
    with opened(archive(b"}(" + deep[:2000] + tensor() + text("w") + tensor() + b"u")) as file:
        assert file.keys() == ["?", "w"]
    unknown = tensor(kind="QInt8Storage")
    with opened(archive(mapping({"q": unknown, "w": tensor()}))) as file:
        assert file.keys() == ["q", "w"]
        assert file.get_slice("q").get_shape() == [2, 3]
        with pytest.raises(glyd.ParameterError, match="QInt8Storage"):
            file.get_tensor("q")
        assert file.get_tensor("w") == bytes(24)


def test_zips_that_are_refused():
    good = archive(mapping({"w": tensor()}))
    for data, why in (
        (archive(mapping({"w": tensor()}), method=zipfile.ZIP_DEFLATED), "compressed"),
        (archive(tensor(), more=[("other/data.pkl", b"")]), "2 files"),
        (archive(tensor(), folder="m/n"), "0 files"),
        (good[:-30], "zip"),
        (good[:100], "zip"),
        (good[:4], "zip"),
    ):
        with pytest.raises(glyd.FormatError, match=why):
            opened(data)
    with pytest.raises(glyd.ParameterError, match="big-endian"):
        opened(archive(tensor()).replace(b"little", b"\0\0\0big"))  # the zip's own check is not ours to make
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = archive(tensor(), more=[("m/data/0", b"")])
    with pytest.raises(glyd.FormatError, match="twice"):
        opened(twice)
    place = good.index(b"PK\x03\x04", 4)
    lying = bytearray(good)
    lying[good.rindex(b"PK\x03\x04")] = 0
    with opened(lying) as file, pytest.raises(glyd.FormatError, match="no header"):
        file.get_tensor("w")
    assert place > 0


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_broken_files_give_our_errors(data):
    """Whatever is changed: the same tensors, others, or an error of ours; never another exception."""
    source = bytearray(unpacked(ALL) if data.draw(st.booleans()) else archive(mapping({"w": tensor(), "v": tensor()})))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(source) - 1))
        source[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(source)), st.integers(0, len(source))))
    with contextlib.suppress(glyd.GlydError), opened(bytes(source[:cut])) as file:
        for name in file.offset_keys():
            with contextlib.suppress(glyd.GlydError):
                assert len(file.get_tensor(name)) <= len(source)


def test_random_pickles_give_our_errors():
    rng = random.Random(3)
    codes = b"0123456789().}]{NQRbcdeghijlopqrstuxX\x80\x81\x85\x86\x87\x88\x89\x8a\x8c\x90\x93\x94\x95"
    for _ in range(2000):
        root = bytes(rng.choice(codes) for _ in range(rng.randrange(1, 40)))
        with contextlib.suppress(glyd.FormatError):
            opened(archive(root)).close()
