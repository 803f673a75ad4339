# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What ``glyd --help`` prints. A test holds it against the parser, option by option."""

HELP = """\
glyd - compress, restore, test and list files

USAGE
  glyd [LEVEL] [OPTIONS] [FILE...] [-o OUT]    FILE becomes FILE.glyd
  glyd -d [OPTIONS] [FILE.glyd...] [-o OUT]    FILE.glyd becomes FILE
  glyd --test | --list | --info [FILE.glyd...]
  glyd -b [FILE...]                            measure levels on your data
  glyd pack MODEL OUT | unpack DIR OUT | verify DIR    model checkpoints
  glyd run MODEL | serve MODEL    chat with a model; an OpenAI API (run --help)
  glyd fit MODEL | doctor      which GPUs it fits; what works on this machine
  glyd train | bundle | unbundle    many small objects (train --help)

  Without FILE, or with -, standard input goes to standard output. Inputs are
  kept. Nothing is replaced without -f.

LEVELS
  -t, --turbo        read as fast as memory allows
  -1, --fast         write about as fast as lz4
      --default      fewer bytes than lz4 at its speed (the default)
  -9, --max          few bytes, written as fast as zstd does: for what is read
                     more often than written
      --high         fewer still, written at 30 to 150 MB/s, read as fast
  -19, --ultra       fewest bytes that still read fast, written at a few MB/s;
                     each thread takes ten times a segment of 32 MiB to write
  -C, --cold         fewest bytes of all, for what is read a few times in its
                     life: 1.4 to 6 MB/s a core and 340 MB a thread, both ways
      --long         with --max and above: find repeats up to 128 MiB apart;
                     each thread then takes several hundred MiB
      --dense        with --max, --high, --ultra: segments of 128 MiB, however
                     many threads there are to share them: fewer bytes, fewer
                     threads at work
  -r, --records      with any level: store tables and logs (CSV, JSON, SQL,
                     lines of text) as columns where that takes fewer bytes

      --base OLD     with any level: store only what OLD, an older version of
                     any size, does not have. Reading (-d, --test) needs the
                     same OLD again: a file, a pipe, or - for standard input.
                     Several: --base A --base B, in the same order when reading

  -D, --dictionary DICT  store with DICT, which glyd train made from files of
                     the same kind: small ones as objects, in far fewer bytes
                     than a frame; with a level, and above 4 MiB, as frames.
                     Reading (-d, --test) needs the same DICT again; --info -D
                     says what is stored

      --open         store gzip, zip (docx, jar, wheel) and PNG content opened:
                     what is inside, and how to make the file again bit for bit,
                     where that takes fewer bytes. Done by itself at --ultra and
                     --cold; -v says what was opened, and what not and why
      --no-open      leave it closed

  Every level is read by every glyd, without any option but --base and -D, in
  parallel, and from any offset. The same input and level give the same bytes on
  every machine and with any number of threads.

WHAT TO DO
  -z, --compress     compress (the default)
  -d, --decompress   restore; frames one after the other are one content
      --content      write what is inside opened gzip, zip and PNG content,
                     decompressed, to standard output, or OUT: much faster than
                     restoring the file and decompressing that
      --test         read everything, check everything, write nothing
  -l, --list         one line a file: frames, segments, sizes, ratio, check
      --info         all that is known about each frame
  -b, --bench        benchmark: see below
  -h, --help         this page
  -V, --version      versions of the command and of the codec

OPTIONS
  -o, --output OUT   write to OUT: a new file, a folder (outputs keep their
                     names), a pipe, or a device
  -c, --stdout       write to standard output; several files one after the other
  -k, --keep         keep the inputs (the default)
      --rm           remove each input once its output is complete and on disk;
                     never with -c or --test, never links
  -f, --force        replace existing outputs; compress FILE.glyd once more;
                     write compressed data to a terminal, or over a block device
  -T, --threads N    work on N segments at once; 0, the default: one a CPU
      --memory SIZE  with -d, --test: refuse input that takes more memory to
                     read (K, M, G, T are powers of 1024; the default is 2G)
      --no-check     store no checksums: damage may then pass unnoticed
      --no-weights   compress models (safetensors, GGUF, files of PyTorch and
                     NumPy) like any other file: by default their numbers are
                     split into fields, which saves a third of bf16 ones
      --sparse       with -d: leave holes for long runs of zeros. Done by itself
                     when the output is a regular file; never done to standard
                     output, which may be appending
      --no-sparse    with -d: write every zero
  -q, --quiet        print errors only
  -v, --verbose      print more
      --json         with --list, --info, -b: print JSON instead of a table
      --             everything after it is a FILE, even if it begins with -

BENCHMARK
  -b reads each FILE into memory and measures every level, with one thread and
  with all (-T), beside zstd, lz4, xz and zlib as far as Python has them
  (pip install 'glyd-cli[bench]'). All run in this process, in turn, round by
  round; medians are shown and every result is decoded and compared. With --base
  the levels work against OLD, and nothing else is measured.
      --seconds S    time for each row and direction, at least one round (3)
      --limit SIZE   use only the first SIZE bytes of each file
      --plot FILE    draw ratio against speed, as .png or .svg

MODELS
  pack makes a directory from MODEL, a directory of safetensors files or a name
  on the Hugging Face hub (pip install 'glyd-cli[models]'), in which the bf16
  matrices take a third less and all else is as it was. unpack restores every
  weight file byte for byte; verify checks every byte. -T, -q, -v and --json go
  with all three. OUT must not exist, or be empty. pack that was stopped goes on
  when it is called again.
      --layout L     tiered (smallest, the default) or mma12 (quickest to read)
      --revision R   branch, tag or commit of a model on the hub

  fit says what MODEL takes as bf16 and packed, and which GPUs it fits with how
  much context, from its configuration and the headers of its weight files: a
  directory, a name on the hub, or a URL. Nothing else is downloaded. --json
      --gpu GPU      H100, "RTX 4090", 48GB, 80GiB ... instead of common ones
      --context N    tokens of one sequence (8192, or what the model has)

FILES AND SAFETY
  An output appears under its name in one step, complete, with the permissions
  (no set-uid) and times of its input; until then nobody else can open it. A
  run that fails or is stopped leaves what was there and no half file. Writing
  onto an input, under whatever name, is refused. With -f a symbolic link as
  output is replaced itself; the file it points to stays as it is. Links are
  followed for reading. Folders, devices and sockets are refused as inputs:
      tar -cf - DIR | glyd -o DIR.tar.glyd
      head -c 1G DEVICE | glyd -o OUT.glyd

EXIT STATUS
  0  all done          3  input corrupt, cut short, or no glyd frame
  1  wrong usage       4  a limit was exceeded, or memory ran out
  2  a file could not be read or written
  5  wrong or missing base or dictionary
  With several files the highest one. 130, 143: stopped by Ctrl-C, SIGTERM.
  141: the reader of the output closed it.

EXAMPLES
  glyd notes.txt                       notes.txt.glyd
  glyd -9 -T4 logs/*.log               four threads, best ratio
  glyd -d notes.txt.glyd -o old.txt    restore under another name
  tar -cf - src | glyd -9 -o src.tar.glyd
  glyd -dc src.tar.glyd | tar -xf -
  glyd --base monday.sql tuesday.sql   only what is new since Monday
  glyd -d --base monday.sql tuesday.sql.glyd
  glyd -b --plot levels.svg sample.json
"""
