import { html, type Html } from '../pages/layout.ts'

/** The link to a URL or an e-mail address, as configured. */
export const contactLink = (contact: string): Html =>
  html`<a href="${/^https?:\/\//.test(contact) ? contact : `mailto:${contact}`}">${contact}</a>`
