// Adds a button to each block of code that copies it. Without scripts, or where a browser lets no page copy, there is none.
const SHOWN_MS = 3000

function addButton(block, status) {
  const code = block.querySelector('pre')
  const button = document.createElement('button')
  const what = document.createElement('span')
  const label = (text) => button.replaceChildren(text, what)
  let timer
  what.className = 'unseen'
  what.textContent = `: ${code.getAttribute('aria-label')}`
  button.type = 'button'
  label('Copy')
  const tell = (text) => {
    clearTimeout(timer)
    label(text)
    status.textContent = text
    timer = setTimeout(() => {
      label('Copy')
      status.textContent = ''
    }, SHOWN_MS)
  }
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(code.textContent).then(
      () => tell('Copied'),
      () => tell('Not copied'),
    )
  })
  block.querySelector('figcaption').append(button)
}

if (navigator.clipboard !== undefined) {
  const status = document.createElement('p')
  status.className = 'unseen'
  status.setAttribute('role', 'status')
  document.querySelector('main').append(status)
  for (const block of document.querySelectorAll('.code')) addButton(block, status)
}
