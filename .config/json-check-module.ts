/** Compiles the check of JSON, and writes the binary as a module. */
import wabt from 'wabt'

const compiler = await wabt()

export function jsonCheckModule(source: string): string {
  const parsed = compiler.parseWat('json-check.wat', source, { simd: true })
  parsed.validate()
  const base64 = Buffer.from(parsed.toBinary({}).buffer).toString('base64')
  return `/** \`json-check.wat\` compiled, as base64: made by \`npm run generate\`. */\nexport const JSON_CHECK = '${base64}'`
}
