RATES = {"book": 200}
