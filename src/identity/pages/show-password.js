// Adds a button to the password field that shows what was typed. Without scripts there is none, and nothing is missing.
const field = document.querySelector('input[data-show]')
const button = document.createElement('button')
const label = (hidden) => {
  button.textContent = hidden ? field.dataset.show : field.dataset.hide
  button.setAttribute('aria-label', hidden ? field.dataset.showLabel : field.dataset.hideLabel)
}
button.type = 'button'
button.className = 'show'
button.setAttribute('aria-controls', field.id)
label(true)
button.addEventListener('click', () => {
  const hidden = field.type === 'text'
  field.type = hidden ? 'password' : 'text'
  label(hidden)
})
// Browsers offer what was sent in a text field again, and so would show it to the next person.
field.form.addEventListener('submit', () => {
  field.type = 'password'
  label(true)
})
field.after(button)
