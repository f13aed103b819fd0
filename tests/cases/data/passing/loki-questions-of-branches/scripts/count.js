let n = 0;
for (let i = 0; i < 300000; i++) n += i % 7;
console.log(JSON.stringify({ n }));
