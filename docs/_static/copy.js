// Copyright 2026 The tfplugin Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A button above each block of code that copies its text.
document.addEventListener('DOMContentLoaded', () => {
  for (const block of document.querySelectorAll('div.highlight > pre')) {
    const button = document.createElement('button');
    button.className = 'copy-button';
    button.type = 'button';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', 'Copy this code');
    button.addEventListener('click', async () => {
      // Prompts of examples are no part of the code.
      const lines = block.innerText.trimEnd().split('\n');
      // Of a diff the new text is copied.
      const code = block.closest('.highlight-diff')
        ? lines.filter((line) => !line.startsWith('-'))
            .map((line) => line.slice(1))
        : lines.some((line) => line.startsWith('>>> '))
        ? lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line))
            .map((line) => line.slice(4))
        : lines.map((line) => line.replace(/^\$ /, ''));
      const text = code.join('\n') + '\n';
      try {
        await navigator.clipboard.writeText(text);
      } catch {  // A file that is opened without a server.
        const area = document.createElement('textarea');
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand('copy');
        area.remove();
      }
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
    block.parentElement.append(button);
  }
});
