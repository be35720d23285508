import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * A program beside the file that asks, of its kind: `.ts` where the sources run, `.js` where what was compiled from them
 * does. Imports are rewritten by the compiler; a name in a text is not.
 * @param url `import.meta.url` of the file that asks
 * @param name without an extension
 */
export const programBeside = (url: string, name: string): URL =>
  new URL(`./${name}${extname(fileURLToPath(url))}`, url)
