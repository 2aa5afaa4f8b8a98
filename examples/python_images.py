"""Ask about many images, some in each request: python_images.py MODEL QUESTION IMAGE..."""

import sys

from lmwire import Worker, image_part

IMAGES_PER_REQUEST = 4  # limited by the model and by memory

model, question, *images = sys.argv[1:]
with Worker() as worker:
    worker.load(model)
    for first in range(0, len(images), IMAGES_PER_REQUEST):
        group = images[first : first + IMAGES_PER_REQUEST]
        names = ", ".join(f"{number} is {name}" for number, name in enumerate(group, first + 1))
        text = f"You see {len(group)} of {len(images)} images: {names}. {question}"
        content = [*map(image_part, group), {"type": "text", "text": text}]
        print(f"{', '.join(group)}:")
        with worker.chat([{"role": "user", "content": content}], max_tokens=200) as stream:
            for delta in stream:
                print(delta.text, end="", flush=True)
        print()
