// Adds a button to each password field that shows what was typed. Without scripts there is none, and nothing is missing.
for (const field of document.querySelectorAll('input[data-show]')) {
  const button = document.createElement('button')
  const what = document.createElement('span')
  const label = (text) => button.replaceChildren(text, what)
  what.className = 'unseen'
  what.textContent = ` ${field.dataset.what}`
  button.type = 'button'
  button.className = 'show'
  button.setAttribute('aria-controls', field.id)
  label(field.dataset.show)
  button.addEventListener('click', () => {
    const hidden = field.type === 'text'
    field.type = hidden ? 'password' : 'text'
    label(hidden ? field.dataset.show : field.dataset.hide)
  })
  // Browsers offer what was sent in a text field again, and so would show it to the next person.
  field.form.addEventListener('submit', () => {
    field.type = 'password'
    label(field.dataset.show)
  })
  field.after(button)
}
