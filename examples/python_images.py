"""Ask about many images, a group at a time: python_images.py MODEL QUESTION IMAGE..."""

import sys

from lmwire import Worker, image_part

AT_ONCE = 4  # the number of images that the model and the memory can take together

model, question, *images = sys.argv[1:]
with Worker() as worker:
    worker.load(model)
    for first in range(0, len(images), AT_ONCE):
        group = images[first : first + AT_ONCE]
        names = ", ".join(f"{number} is {name}" for number, name in enumerate(group, first + 1))
        text = f"You see {len(group)} of {len(images)} images: {names}. {question}"
        content = [*map(image_part, group), {"type": "text", "text": text}]
        print(f"{', '.join(group)}:")
        with worker.chat([{"role": "user", "content": content}], max_tokens=200) as stream:
            for piece in stream:
                print(piece.text, end="", flush=True)
        print()
