"""Chat templates that do what released ones do with turns, written anew from what they make of conversations."""

# Qwen3-VL-Thinking: a system message of its own, thinking left out of earlier answers, and `<think>` opened.
THINKING = """\
{%- for message in messages -%}
{%- set texts = namespace(all='') -%}
{%- if message.content is string -%}{%- set texts.all = message.content -%}{%- else -%}
{%- for part in message.content -%}
{%- set shown = '<|vision_start|><|image_pad|><|vision_end|>' if part.type == 'image' else part.text -%}
{%- set texts.all = texts.all + shown -%}
{%- endfor -%}{%- endif -%}
{%- if message.role == 'assistant' and '</think>' in texts.all -%}
{%- set texts.all = texts.all.split('</think>')[-1].lstrip('\\n') -%}
{%- endif -%}
{{- '<|im_start|>' + message.role + '\\n' + texts.all + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}{%- endif -%}"""

# Gemma 3: the system message is the beginning of the first user turn, texts are trimmed, and roles have to alternate.
FOLDED = """\
{{- bos_token -}}
{%- set folded = namespace(text='') -%}
{%- if messages[0].role == 'system' -%}
{%- set content = messages[0].content -%}
{%- set folded.text = (content if content is string else content[0].text) + '\\n\\n' -%}
{%- set turns = messages[1:] -%}
{%- else -%}{%- set turns = messages -%}{%- endif -%}
{%- for message in turns -%}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') -}}
{%- endif -%}
{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' -}}
{{- folded.text if loop.first else '' -}}
{%- if message.content is string -%}{{- message.content | trim -}}{%- else -%}
{%- for part in message.content -%}
{{- '<start_of_image>' if part.type == 'image' else part.text | trim -}}
{%- endfor -%}{%- endif -%}
{{- '<end_of_turn>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\\n' -}}{%- endif -%}"""

# Gemma 2 and others take no system message.
REFUSING = (
    "{%- if messages[0].role == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}" + FOLDED
)
# Some take one, and leave it out without a word.
SILENT = "{%- if messages[0].role == 'system' -%}{%- set messages = messages[1:] -%}{%- endif -%}" + FOLDED
OF_FAMILY = {"qwen3_vl": THINKING, "gemma3": FOLDED}
