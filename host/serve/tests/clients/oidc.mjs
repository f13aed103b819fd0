// A real provider of OpenID Connect. Prints its address, and then the tokens that it issues, one a line.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

// What the library has to say goes where nobody reads a token.
console.info = console.error;

const require = createRequire(join(process.argv[2], 'package.json'));
const { Provider, errors } = await import(require.resolve('oidc-provider'));

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const audiences = { 'urn:hotcell': 'hotcell', 'urn:other': 'somebody else' };
const provider = new Provider(issuer, {
  clients: [{ client_id: 'robot', client_secret: 'robots-secret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }],
  scopes: ['run', 'answer'],
  extraTokenClaims: () => ({ org: 'acme' }),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (context, resource) => {
        const audience = audiences[resource];
        if (!audience) throw new errors.InvalidTarget();
        const alg = context.get('x-alg') || 'RS256';
        return { scope: 'run answer', audience, accessTokenTTL: 600, accessTokenFormat: 'jwt', jwt: { sign: { alg } } };
      },
    },
  },
});
server.on('request', provider.callback());

const token = async (resource, scope, alg) => {
  const reply = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('robot:robots-secret')}`, 'x-alg': alg },
    body: new URLSearchParams({ grant_type: 'client_credentials', resource, scope }),
  });
  const said = await reply.json();
  if (!said.access_token) throw new Error(JSON.stringify(said));
  return said.access_token;
};

console.log(issuer);
console.log(await token('urn:hotcell', 'run answer', 'RS256'));
console.log(await token('urn:hotcell', 'answer', 'RS256'));
console.log(await token('urn:other', 'run answer', 'RS256'));
// Until somebody closes its input.
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
