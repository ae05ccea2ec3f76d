// Writes .br and .gz beside every text file of the build, so that the server compresses nothing while people wait,
// and keeps the JavaScript inside its budgets.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join, relative, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

const TEXT = new Set(['.css', '.html', '.js', '.json', '.svg', '.txt', '.webmanifest']);
/** Below this the headers outweigh what compression saves. */
const SIZE_MIN = 512;

interface Budget {
	/** What the browser fetches before it shows anything: the scripts that index.html names. */
	readonly firstGzipMax: number;
	/** Those and all that is loaded later. */
	readonly totalGzipMax: number;
}

export function precompress(budget: Budget): Plugin {
	let outDir = '';
	return {
		name: 'voelgoed:precompress',
		apply: 'build',
		configResolved(config) {
			outDir = resolve(config.root, config.build.outDir);
		},
		closeBundle(error) {
			if (error) return;
			const index = readFileSync(join(outDir, 'index.html'), 'utf8');
			let [firstGzip, totalGzip] = [0, 0];
			for (const entry of readdirSync(outDir, { recursive: true, withFileTypes: true })) {
				if (!entry.isFile() || !TEXT.has(extname(entry.name))) continue;
				const path = join(entry.parentPath, entry.name);
				const content = readFileSync(path);
				const gzip = gzipSync(content, { level: constants.Z_BEST_COMPRESSION });
				if (extname(entry.name) === '.js') {
					totalGzip += gzip.length;
					if (index.includes(`"/${relative(outDir, path)}"`)) firstGzip += gzip.length;
				}
				if (content.length <= SIZE_MIN) continue;
				writeFileSync(`${path}.gz`, gzip);
				writeFileSync(
					`${path}.br`,
					brotliCompressSync(content, {
						params: {
							[constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
							[constants.BROTLI_PARAM_SIZE_HINT]: content.length,
						},
					}),
				);
			}
			const used =
				`JavaScript, gzip: first page ${firstGzip} of at most ${budget.firstGzipMax} bytes, ` +
				`all ${totalGzip} of at most ${budget.totalGzipMax}`;
			if (firstGzip > budget.firstGzipMax || totalGzip > budget.totalGzipMax) this.error(used);
			this.info(used);
		},
	};
}
