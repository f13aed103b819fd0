python3 -c "print(1)"
echo "status $?"
git status
wget http://127.0.0.1/
echo "last $?"
