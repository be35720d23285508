import { RECIPES } from './recipes.ts'
import { requestText } from './recorder.ts'

/** `npm run recipe NAME`: the service that a page of config/recipes is about, on the ports that the page shows. */

const [name = ''] = process.argv.slice(2)
const start = Object.hasOwn(RECIPES, name) ? RECIPES[name]?.start : undefined
if (start === undefined) {
  const known = Object.keys(RECIPES).filter((each) => RECIPES[each]?.start !== undefined)
  console.error(`usage: npm run recipe NAME, where NAME is one of: ${known.join(', ')}`)
  process.exit(2)
}

/** A terminal is not for files. */
const shortened = (body: string): string => (body.length > 2000 ? `(${body.length} characters)` : body)

const service = await start({
  folder: process.cwd(),
  portFor: (shown) => Promise.resolve(shown),
  onRequest: (request) => console.log(`${requestText({ ...request, body: shortened(request.body) })}\n`),
})
console.log(`${name}: listening; every request is shown. Stop it by Ctrl-C.\n`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void service.stop())
