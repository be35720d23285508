/** An OpenAPI description as large companies have them: schemas that refer to each other, and to themselves. */

interface Size {
  readonly operations: number
  readonly schemas: number
}

const WORDS = ['amount', 'owner', 'state', 'opened', 'closed', 'region', 'note', 'rate', 'code', 'label']

const TYPES = [
  { type: 'string', maxLength: 200, description: 'A text that people read, as it was entered at first.' },
  { type: 'number', minimum: 0, description: 'An amount in the currency of the account.' },
  { type: 'string', format: 'date-time', description: 'When it was changed last, by whom ever.' },
  { type: 'string', enum: ['open', 'closed', 'suspended'], description: 'What may be done with it.' },
  { type: 'integer', format: 'int64', description: 'How often it was seen since the last report.' },
]

const to = (at: number, { schemas }: Size) => ({ $ref: `#/components/schemas/Entity${at % schemas}` })

function schemaAt(at: number, size: Size) {
  const own = WORDS.map((word, index) => [`${word}${at}`, TYPES[(at + index) % TYPES.length]] as const)
  return {
    type: 'object',
    description: `Entity ${at} of the ledger, with all that belongs to it.`,
    required: ['id', `owner${at}`],
    properties: {
      id: { type: 'string', format: 'uuid', ...(at % 7 === 0 && { readOnly: true }) },
      ...Object.fromEntries(own),
      next: to(at + 1, size),
      parent: { allOf: [to(Math.floor(at / 2), size)] },
      related: { type: 'array', items: to(at * 3 + 1, size) },
      byName: { type: 'object', additionalProperties: to(at + 17, size) },
      last: { allOf: [to(at + 5, size)], nullable: true },
    },
  }
}

const REFUSED = { $ref: '#/components/responses/Refused' }

function operationAt(at: number, size: Size, method: string) {
  const content = { 'application/json': { schema: to(at, size) } }
  return {
    tags: [`Group ${at % 40}`],
    operationId: `operation${at}`,
    summary: `Handle entity ${at} of the ledger`,
    description: `Works on entity ${at}. It answers the entity as it is afterwards, with all that belongs to it.`,
    parameters: [
      {
        name: 'limit',
        in: 'query',
        description: 'At most so many.',
        schema: { type: 'integer', minimum: 1, maximum: 500 },
      },
      {
        name: 'since',
        in: 'query',
        description: 'Changed since then.',
        schema: { type: 'string', format: 'date-time' },
      },
      { name: 'X-Tenant-ID', in: 'header', required: true, schema: { type: 'string' } },
    ],
    ...(method !== 'get' && { requestBody: { required: true, content } }),
    responses: { '200': { description: 'The entity', content }, '400': REFUSED, '404': REFUSED },
  }
}

export function largeDescription(size: Size) {
  const paths: Record<string, Record<string, unknown>> = {}
  const methods = ['get', 'put', 'post'] as const
  for (let at = 0; at < size.operations; at++) {
    const path = `/ledger/entities-${Math.floor(at / 3)}`
    const method = methods[at % 3] ?? 'get'
    paths[path] = { ...paths[path], [method]: operationAt(at, size, method) }
  }
  const schemas = Array.from({ length: size.schemas }, (_, at) => [`Entity${at}`, schemaAt(at, size)])
  return {
    openapi: '3.0.3',
    info: { title: 'Ledger', version: '1' },
    servers: [{ url: 'https://ledger.example/v2' }],
    paths,
    components: {
      responses: { Refused: { description: 'What went wrong' } },
      schemas: Object.fromEntries(schemas) as Record<string, unknown>,
    },
  }
}
